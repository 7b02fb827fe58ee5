"""Reads one GPU through NVML. Runs in NVML's child: standard library and pynvml only, since every import costs memory there.

Nothing here changes a setting. What a GPU or its driver does not support is left out and not asked for again. Cost: five calls
a sample; the rest, some thirty calls and two for each NVLink, only now and then. PCIe throughput is left out: NVML measures it
by standing still for 20 ms a direction, which is 0.3 s a second for eight GPUs.
"""

from typing import Any

Values = dict[str, Any]

_NOT_SUPPORTED, _NO_PERMISSION, _NO_FUNCTION, _OTHER_VERSION = 3, 4, 13, 25
LOST_CODES = frozenset({15, 16, 28})  # lost, reset required, not found
_MOST_LINKS = 36
_MEMORY_V2 = "memory v2"
_MEMORY_TEMPERATURE, _LINK_COUNT = 82, 91
_LINK_TOTALS = (38, 45, 52, 59, 160)  # CRC of flits and of data, replays, recoveries, ECC: all links together
_LINK_PARTS = (161, 162, 163)  # replays, recoveries, CRC: of one link
_VALUE_NAMES = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")  # by NVML's number of the type


class CardLostError(Exception):
    """NVML says that the GPU is lost or needs a reset; the message is NVML's."""


class Card:
    """One GPU. ``denied`` names the calls that were refused."""

    def __init__(self, nvml: Any, index: int) -> None:
        """Finds it. ``nvml`` is the module pynvml, initialised.

        Raises:
            nvml.NVMLError: if there is no such GPU, or it may not be used.
        """
        self._nvml = nvml
        self.index = index
        self.denied: list[str] = []
        self._without: set[str] = set()
        self.handle = nvml.nvmlDeviceGetHandleByIndex(index)

    def identity(self) -> Values:
        """What never changes."""
        pci = self._ask("nvmlDeviceGetPciInfo")
        bus_id = None if pci is None else _text(pci.busId)
        return {"uuid": self._ask("nvmlDeviceGetUUID"), "pci_bus_id": bus_id, "name": self._ask("nvmlDeviceGetName")}

    def pulse(self) -> Values:
        """What changes from second to second. Power in mW, clocks in MHz, utilisation in percent.

        Raises:
            CardLostError: if it is lost.
        """
        use, reasons = self._ask("nvmlDeviceGetUtilizationRates"), self._ask("nvmlDeviceGetCurrentClocksEventReasons")
        if reasons is None:  # drivers before 535
            reasons = self._ask("nvmlDeviceGetCurrentClocksThrottleReasons")
        return {
            "util": None if use is None else use.gpu,
            "mem_util": None if use is None else use.memory,
            "power_mw": self._ask("nvmlDeviceGetPowerUsage"),
            "sm_clock_mhz": self._ask("nvmlDeviceGetClockInfo", self._nvml.NVML_CLOCK_SM),
            "clock_reasons": reasons,
            "temperature_c": self._temperature(),
        }

    def condition(self) -> Values:
        """What changes slowly: limits, memory, processes, error counters.

        Raises:
            CardLostError: if it is lost.
        """
        nvml = self._nvml
        memory, mig = self._memory(), self._ask("nvmlDeviceGetMigMode")
        rows = self._ask("nvmlDeviceGetRemappedRows")
        corrected, uncorrected = nvml.NVML_MEMORY_ERROR_TYPE_CORRECTED, nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED
        is_shared = bool(mig and mig[0])
        return {
            "power_limit_mw": self._ask("nvmlDeviceGetEnforcedPowerLimit"),
            "memory_clock_mhz": self._ask("nvmlDeviceGetClockInfo", nvml.NVML_CLOCK_MEM),
            "used_bytes": None if memory is None else memory.used,
            "total_bytes": None if memory is None else memory.total,
            "pcie_replays": self._ask("nvmlDeviceGetPcieReplayCounter"),
            "ecc_corrected": self._ask("nvmlDeviceGetTotalEccErrors", corrected, nvml.NVML_VOLATILE_ECC),
            "ecc_uncorrected": self._ask("nvmlDeviceGetTotalEccErrors", uncorrected, nvml.NVML_VOLATILE_ECC),
            "is_remap_pending": bool(rows and rows[2]),
            "is_remap_failed": bool(rows and rows[3]),
            "is_shared": is_shared,
            "pids": self._pids(is_shared=is_shared),
            **self._fields(),
            "denied": list(self.denied),
        }

    def _ask(self, name: str, *arguments: Any) -> Any:
        """The answer to one call; None if there is none."""
        call = None if name in self._without else getattr(self._nvml, name, None)  # an older binding may lack it
        if call is None:
            return None
        try:
            return call(self.handle, *arguments)
        except self._nvml.NVMLError as error:
            self._note(name, error)
            return None

    def _note(self, name: str, error: Any) -> None:
        if error.value in LOST_CODES:
            raise CardLostError(str(error)) from error
        if error.value == _NO_PERMISSION:
            self.denied.append(name)
        if error.value in {_NOT_SUPPORTED, _NO_PERMISSION, _NO_FUNCTION, _OTHER_VERSION}:
            self._without.add(name)

    def _temperature(self) -> Any:
        found = self._ask("nvmlDeviceGetTemperatureV", self._nvml.NVML_TEMPERATURE_GPU)
        return self._ask("nvmlDeviceGetTemperature", self._nvml.NVML_TEMPERATURE_GPU) if found is None else found

    def _memory(self) -> Any:
        """By the newer call the driver's own share does not count as used."""
        if _MEMORY_V2 not in self._without:
            try:
                return self._nvml.nvmlDeviceGetMemoryInfo(self.handle, self._nvml.nvmlMemory_v2)
            except self._nvml.NVMLError as error:
                self._note(_MEMORY_V2, error)
        return self._ask("nvmlDeviceGetMemoryInfo")

    def _pids(self, *, is_shared: bool) -> list[int] | None:
        """None where they are not told. In our pid namespace, or the machine's with old drivers."""
        found = self._ask("nvmlDeviceGetComputeRunningProcesses_v3")
        if found is None:
            found = self._ask("nvmlDeviceGetComputeRunningProcesses_v2")
        if found is None and is_shared:
            found = [process for part in self._instances() for process in self._running(part)]
        return None if found is None else sorted({process.pid for process in found})

    def _instances(self) -> list[Any]:
        parts = []
        for number in range(self._ask("nvmlDeviceGetMaxMigDeviceCount") or 0):
            try:
                parts.append(self._nvml.nvmlDeviceGetMigDeviceHandleByIndex(self.handle, number))
            except self._nvml.NVMLError:
                continue
        return parts

    def _running(self, part: Any) -> list[Any]:
        try:
            return list(self._nvml.nvmlDeviceGetComputeRunningProcesses_v3(part))
        except self._nvml.NVMLError:
            return []

    def _fields(self) -> Values:
        """Heat of the memory; links that are up, and the errors of all of them."""
        first = self._field_values([_MEMORY_TEMPERATURE, _LINK_COUNT])
        links = min(first.get(_LINK_COUNT) or 0, _MOST_LINKS)
        up = [link for link in range(links) if self._ask("nvmlDeviceGetNvLinkState", link) == 1]
        errors = self._link_errors(links) if links else None
        return {"memory_temperature_c": first.get(_MEMORY_TEMPERATURE), "up_links": up, "nvlink_errors": errors}

    def _link_errors(self, links: int) -> int | None:
        """Newer GPUs count for each link, older ones for all together."""
        found = self._field_values(list(_LINK_TOTALS))
        if not found:
            found = self._field_values([(field, link) for link in range(links) for field in _LINK_PARTS])
        return sum(found.values()) if found else None

    def _field_values(self, fields: list[Any]) -> dict[Any, int]:
        """Those of the fields that have a value."""
        values = self._ask("nvmlDeviceGetFieldValues", fields)
        if values is None:
            return {}
        return {
            field: int(getattr(value.value, _VALUE_NAMES[value.valueType]))
            for field, value in zip(fields, values, strict=True)
            if value.nvmlReturn == 0 and value.valueType < len(_VALUE_NAMES)
        }


def _text(value: Any) -> str:
    return value.decode("ascii", "replace") if isinstance(value, bytes) else str(value)
