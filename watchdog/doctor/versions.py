"""Which versions are here, and what each allows. Pure."""

from collections.abc import Iterator

from pardbg.collectors.node.surroundings import Surroundings
from pardbg.watchdog.doctor.check import Check, State

_FIRST_ON, _FIRST_GLOO = (2, 11), (2, 13)


def check_versions(surroundings: Surroundings) -> Iterator[Check]:
    """pardbg, Python, kernel. py-spy's is in its own check."""
    software = surroundings.software
    yield _version("pardbg", f"{software.pardbg} on Python {software.python}: scans jobs of this machine")
    yield _version("kernel", f"{software.kernel}: memory is read without stopping anybody")


def check_torch_versions(surroundings: Surroundings) -> Iterator[Check]:
    """What the ranks have mapped; how much of it a recorder has, that of torch says."""
    versions = sorted({look.torch for job in surroundings.processes.jobs for look in job.looks if look.torch})
    if len(versions) > 1:
        words = " and ".join(f"{major}.{minor}" for major, minor in versions)
        yield _version("torch", f"{words} are mapped by ranks")
    elif versions:
        yield _version("torch", f"{versions[0][0]}.{versions[0][1]} in ranks: {_allows(versions[0])}")


def check_driver(surroundings: Surroundings) -> Iterator[Check]:
    """NVIDIA's driver, if any."""
    driver = surroundings.trial.driver
    if driver is not None:
        version = driver.version
        yield _version(
            "driver", f"NVIDIA {version}: the kernel log has its errors (Xid)" if version else "no NVIDIA driver is loaded"
        )


def _allows(version: tuple[int, int]) -> str:
    if version < _FIRST_ON:
        return "a recorder only where one is asked for"
    return "a recorder unless switched off" + (", with gloo, too" if version >= _FIRST_GLOO else "")


def _version(name: str, seen: str) -> Check:
    return Check(name=name, state=State.OK, seen=seen)
