"""Everybody is there, and a device or the library does not finish (C55, C56, C58, C59)."""

from msgspec.structs import replace

from pardbg.watchdog.model.names import Cause, Kind
from pardbg.watchdog.sim.casebook.case import Case, Family, less_seen, near_miss, reported
from pardbg.watchdog.sim.casebook.draw import Draw
from pardbg.watchdog.sim.casebook.job import Job
from pardbg.watchdog.sim.casebook.places import LAUNCH_TOP, LOADER, NCCL_LIBRARY, SYNCHRONIZE, native
from pardbg.watchdog.sim.faults.absent import missing
from pardbg.watchdog.sim.instruction import Op
from pardbg.watchdog.sim.truth import NOT_SURE, Answer, Truth, unknown_because


def _jammed(draw: Draw, *, has_series: bool) -> Job:
    """Nothing of NCCL is outstanding; every rank stands in another launch."""
    job = Job(draw, 4, per_host=1)
    job.step(5)
    for rank, name in enumerate(("rope", "norm", "project", "sample")):
        job.stand(rank, draw.own(name, "model.py"), *job.base)
        job.stand(rank, *LAUNCH_TOP, draw.own(name, "model.py"), *job.base, is_native=True)
        if has_series:
            job.gpu(rank, util=96, power_w=18 if rank else 19)
    return job


def _all_in_launches(draw: Draw) -> Case:
    return Case(
        scenario=(
            "Four ranks stand in kernel launches at four different lines of the model; natively all are in `cuLaunchKernel`. "
            "The GPUs are at 96 % with almost no power and no memory traffic. Every collective is done, with equal counts."
        ),
        files=_jammed(draw, has_series=True).files,
        truth=Truth(
            kind=Kind.DEVICE_STUCK,
            cause=Cause.GPU_KERNEL,
            acceptable=(NOT_SURE, Answer(kind=Kind.DEVICE_STUCK), Answer(kind=None)),
        ),
        is_ended_unsaid=True,
    )


def _launches_without_series(draw: Draw) -> Case:
    return Case(
        scenario=(
            "Four ranks stand in kernel launches at four different lines of the model. Every collective is done. No GPU was "
            "seen."
        ),
        files=_jammed(draw, has_series=False).files,
        truth=unknown_because("nobody waits for another", acceptable=(Answer(kind=None), Answer(kind=Kind.DEVICE_STUCK))),
        is_ended_unsaid=True,
    )


def _loading_module(draw: Draw, *, is_native: bool) -> tuple[Job, int]:
    job = Job(draw, draw.world(4, 16))
    culprit = draw.rank(job.ranks)
    job.step(3)
    job.issue(Op.ALL_REDUCE, 1024, ranks=job.others(culprit), is_done=False)
    frames = (draw.own("first_use", "kernels.py"), *job.base)
    job.stand(culprit, *frames)
    if is_native:
        job.stand(culprit, native("cuLibraryLoadData"), native("cudaGetFuncBySymbol"), *frames, is_native=True)
    return job, culprit


def _first_load(draw: Draw) -> Case:
    job, culprit = _loading_module(draw, is_native=True)
    device = Answer(kind=Kind.DEVICE_STUCK, culprits=(culprit,))
    answers = (device, Answer(kind=Kind.MISSING_PARTICIPANT, cause=Cause.USER_CODE, culprits=(culprit,)))
    return Case(
        scenario=(
            f"Rank {culprit} uses a kernel for the first time; natively it is in `cuLibraryLoadData`, which waits until the "
            "device is idle. The others' devices spin in an all_reduce that it has not issued."
        ),
        files=job.files,
        truth=replace(missing(culprit, cause=Cause.NATIVE_CODE), acceptable=answers),
    )


def _first_load_python_only(draw: Draw) -> Case:
    job, culprit = _loading_module(draw, is_native=False)
    return Case(
        scenario=f"Rank {culprit} stands in `first_use`; no native stack was taken. The others wait in an all_reduce.",
        files=job.files,
        truth=missing(culprit, cause=Cause.USER_CODE),
    )


def _data_instead(draw: Draw) -> Case:
    job = Job(draw, draw.world(4, 16))
    culprit = draw.rank(job.ranks)
    job.step(3)
    job.issue(Op.ALL_REDUCE, 1024, ranks=job.others(culprit), is_done=False)
    job.stand(culprit, *LOADER, *job.base)
    job.stand(culprit, native("sem_wait", "libc.so.6"), *LOADER, *job.base, is_native=True)
    return Case(
        scenario=f"Rank {culprit} waits for its data loader, natively in a semaphore. The others wait in an all_reduce.",
        files=job.files,
        truth=missing(culprit, cause=Cause.DATA_LOADING),
    )


def _all_equal(draw: Draw, *, is_native: bool) -> tuple[Job, int]:
    job = Job(draw, 16)
    leaking = draw.rank(job.ranks)
    job.step(draw.number(3, 20))
    at = job.at(Op.ALL_REDUCE)
    job.issue(Op.ALL_REDUCE, 4_194_304, at=at, is_done=False)
    for rank in job.ranks if is_native else ():
        waits = native("ncclGroupEnd", NCCL_LIBRARY)
        spins = (native("ncclLocalOpAppend", NCCL_LIBRARY), native("SaveProxy", NCCL_LIBRARY))
        job.stand(rank, *(spins if rank == leaking else (waits,)), *at, is_native=True)
    return job, leaking


def _one_appends(draw: Draw) -> Case:
    job, leaking = _all_equal(draw, is_native=True)
    return Case(
        scenario=(
            "Sixteen ranks wait in the same all_reduce at the same Python line. Natively fifteen wait in the collective; rank "
            f"{leaking} spins in NCCL's `ncclLocalOpAppend` while its progress thread sleeps."
        ),
        files=job.files,
        truth=Truth(
            kind=Kind.COMM_STUCK,
            cause=Cause.NCCL,
            acceptable=(Answer(kind=Kind.COMM_STUCK), Answer(kind=Kind.COMM_STUCK, cause=Cause.NCCL, culprits=(leaking,))),
        ),
    )


def _all_equal_in_python(draw: Draw) -> Case:
    job, _ = _all_equal(draw, is_native=False)
    return Case(
        scenario="Sixteen ranks wait in the same all_reduce at the same Python line. No native stacks were taken.",
        files=job.files,
        truth=Truth(kind=Kind.COMM_STUCK),
    )


def _one_differs_in_python(draw: Draw) -> Case:
    job = Job(draw, 16)
    culprit = draw.rank(job.ranks)
    job.step(5)
    job.issue(Op.ALL_REDUCE, 4_194_304, ranks=job.others(culprit), is_done=False)
    job.stand(culprit, *LOADER, *job.base)
    return Case(
        scenario=f"Fifteen ranks wait in the same all_reduce. Rank {culprit} waits for its data loader.",
        files=job.files,
        truth=missing(culprit, cause=Cause.DATA_LOADING),
    )


def _frozen(draw: Draw, *, has_series: bool, power_w: int = 250) -> tuple[Job, int]:
    job = Job(draw, draw.world(8, 32))
    culprit = draw.rank(job.ranks)
    job.step(5)
    job.issue(Op.ALL_REDUCE, 4_194_304, ranks=job.others(culprit), is_done=False)
    job.stand(culprit, *SYNCHRONIZE, draw.own("loss_item", "losses.py"), *job.base)
    for rank in job.ranks if has_series else ():
        is_odd = rank == culprit
        job.gpu(rank, util=100, power_w=power_w if is_odd else 130, mem_util=40 if is_odd else 0)
    return job, culprit


def _one_device_differs(draw: Draw) -> Case:
    job, culprit = _frozen(draw, has_series=True, power_w=draw.number(380, 650))
    answers = (Answer(kind=Kind.DEVICE_STUCK, culprits=(culprit,)), Answer(kind=Kind.MISSING_PARTICIPANT, culprits=(culprit,)))
    return Case(
        scenario=(
            f"All GPUs but that of rank {culprit} spin at little power in an all_reduce that rank {culprit} has not issued: it "
            "waits in `torch.cuda.synchronize` for its own GPU, which draws much more. The driver reports nothing."
        ),
        files=job.files,
        truth=Truth(kind=Kind.DEVICE_STUCK, cause=Cause.GPU_KERNEL, culprits=(culprit,), acceptable=answers),
    )


def _device_idles(draw: Draw) -> Case:
    job, culprit = _frozen(draw, has_series=True)
    job.stand(culprit, *LOADER, *job.base)
    job.gpu(culprit, util=0, power_w=72)
    return Case(
        scenario=(
            f"All GPUs but that of rank {culprit} spin in an all_reduce. Rank {culprit} waits for its data loader; its GPU is "
            "idle."
        ),
        files=job.files,
        truth=missing(culprit, cause=Cause.DATA_LOADING),
    )


def _waits_for_device(draw: Draw) -> Case:
    job, culprit = _frozen(draw, has_series=False)
    return Case(
        scenario=(
            f"All ranks but {culprit} wait in an all_reduce. Rank {culprit} has not issued it: it waits in "
            "`torch.cuda.synchronize`, with nothing of NCCL outstanding. No GPU was seen."
        ),
        files=job.files,
        truth=Truth(
            kind=Kind.DEVICE_STUCK,
            culprits=(culprit,),
            acceptable=(NOT_SURE, Answer(kind=Kind.MISSING_PARTICIPANT, culprits=(culprit,))),
        ),
    )


FAMILIES = (
    Family(
        number="C55",
        title="kernel launches behind a jammed queue",
        variants=(reported(_all_in_launches), less_seen(_launches_without_series)),
    ),
    Family(
        number="C56",
        title="a module is loaded behind a kernel that spins",
        variants=(reported(_first_load), near_miss(_data_instead), less_seen(_first_load_python_only)),
    ),
    Family(
        number="C58",
        title="NCCL's proxy slots leak",
        variants=(reported(_one_appends), near_miss(_one_differs_in_python), less_seen(_all_equal_in_python)),
    ),
    Family(
        number="C59",
        title="counts and devices decide",
        variants=(reported(_one_device_differs), near_miss(_device_idles), less_seen(_waits_for_device)),
    ),
)
