"""The worker server is started where its threads can be, and takes no signals; torch is a stand-in here."""

from pathlib import Path

from tests.probe.children import run_child

START = """
from types import SimpleNamespace
from pardbg.collectors.probe.worker_server import start_server
def make(path):
    print('made', sorted(signal.Signals(n).name for n in signal.pthread_sigmask(signal.SIG_BLOCK, []) if n in {11, 15, 10}))
    return object()
try:
    start_server(folder + '/s', SimpleNamespace(_WorkerServer=make))
except (OSError, RuntimeError) as error:
    print(type(error).__name__)
print(len(os.listdir('/proc/self/task')), signal.pthread_sigmask(signal.SIG_BLOCK, []))
"""
STARTED = "made ['SIGTERM', 'SIGUSR1']\n1 set()\n"


def test_its_threads_inherit_that_signals_are_blocked_but_for_fatal_ones(tmp_path: Path) -> None:
    assert run_child(START, tmp_path).out == STARTED


def test_without_room_for_threads_there_is_none(tmp_path: Path) -> None:
    """Torch's threads that cannot start end the process. The limit on processes does not hold for root."""
    limit = "os.setresuid(65534, 65534, 65534) if os.geteuid() == 0 else None\n"
    limit += "resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))\n"
    head = "import pardbg.collectors.probe.worker_server, ctypes.util, types\n"
    assert run_child(head + limit + START, tmp_path).out == "RuntimeError\n1 set()\n"


def test_with_a_limited_address_space_there_is_none(tmp_path: Path) -> None:
    limit = "resource.setrlimit(resource.RLIMIT_AS, (1 << 40, 1 << 40))\n"
    assert run_child(limit + START, tmp_path).out == "OSError\n1 set()\n"


def test_a_path_that_is_too_long_is_refused(tmp_path: Path) -> None:
    assert run_child("folder = '/tmp/' + 'x' * 100\n" + START, tmp_path).out == "OSError\n1 set()\n"
