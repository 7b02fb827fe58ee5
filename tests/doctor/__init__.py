"""`pardbg doctor`: its checks, its text, the command itself."""
