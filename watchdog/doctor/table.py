"""All checks, in the order in which they are shown. A new check is a function and a line here."""

from pardbg.collectors.node.surroundings import Surroundings
from pardbg.watchdog.doctor.check import Check, CheckFunction, Examination
from pardbg.watchdog.doctor.clocks import check_clock, check_temporary_files
from pardbg.watchdog.doctor.devices import check_gpus
from pardbg.watchdog.doctor.jobs import check_attach, check_jobs, check_nccl_timeout, check_recorder, check_recorder_access
from pardbg.watchdog.doctor.kernel import check_kernel_log, check_oom_counter, check_process_files
from pardbg.watchdog.doctor.namespaces import check_mount_namespace, check_pid_namespace
from pardbg.watchdog.doctor.privileges import check_other_users, check_user, check_yama
from pardbg.watchdog.doctor.stacks import check_py_spy, check_pythons
from pardbg.watchdog.doctor.tracing import check_memory, check_ptrace, check_seccomp, check_trial
from pardbg.watchdog.doctor.versions import check_driver, check_torch_versions, check_versions

CHECKS: tuple[CheckFunction, ...] = (
    check_user,
    check_other_users,
    check_yama,
    check_seccomp,
    check_trial,
    check_memory,
    check_ptrace,
    check_py_spy,
    check_pid_namespace,
    check_mount_namespace,
    check_jobs,
    check_pythons,
    check_recorder,
    check_recorder_access,
    check_attach,
    check_nccl_timeout,
    check_process_files,
    check_oom_counter,
    check_kernel_log,
    check_clock,
    check_temporary_files,
    check_versions,
    check_torch_versions,
    check_driver,
    check_gpus,
)


def examine(surroundings: Surroundings) -> Examination:
    """Runs every check."""
    checks: list[Check] = [check for function in CHECKS for check in function(surroundings)]
    return Examination(
        pardbg_version=surroundings.software.pardbg,
        host=surroundings.host,
        checked_at=surroundings.observed_at,
        checks=tuple(checks),
    )
