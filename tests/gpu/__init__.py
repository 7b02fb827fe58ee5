"""GPUs, through the real ctypes path: pynvml loads a library that `nvml_stand_in.c` makes."""
