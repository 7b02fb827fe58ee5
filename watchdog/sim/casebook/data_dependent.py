"""Branches of the model that hang on a rank's own data (C10, C11, C13), and memory that one rank recovers from (C08)."""

from msgspec.structs import replace

from pardbg.watchdog.model.names import Cause, CollectorName, Kind, Mismatch
from pardbg.watchdog.sim.casebook.case import Case, Family, less_seen, near_miss, reported
from pardbg.watchdog.sim.casebook.draw import Draw
from pardbg.watchdog.sim.casebook.job import Job
from pardbg.watchdog.sim.casebook.lines import fingerprints, timeout, traceback
from pardbg.watchdog.sim.casebook.rank_zero_only import differing
from pardbg.watchdog.sim.instruction import Op
from pardbg.watchdog.sim.truth import HEALTHY, NOT_SURE, Answer, Truth, unknown_because

_LOG = CollectorName.RANK_LOG


def _branch(draw: Draw, op: Op, few: tuple[int, ...], world: int, names: tuple[str, str]) -> tuple[Job, int, int]:
    """The few are at another place of the model than the others, at one sequence number, with another size."""
    job = Job(draw, world)
    job.step(draw.number(3, 9))
    size, other = draw.sizes(2)
    here, there = (job.at(op, draw.own("fetch_parameters", "zero3.py"), draw.own(name, "model.py")) for name in names)
    job.issue(op, size, ranks=few, at=here, is_done=False)
    job.issue(op, other, ranks=job.others(*few), at=there, is_done=False)
    return job, size, other


_TEXT_ONLY = ("layer_0", "vision_tower")


def _no_image(draw: Draw) -> Case:
    world = draw.world(8)
    few = draw.minority(world)
    job, size, other = _branch(draw, Op.ALL_GATHER, few, world, _TEXT_ONLY)
    seeing = draw.rank(job.others(*few))
    job.log(seeing, fingerprints((seeing, few[0]), 2373, "_ALLGATHER_BASE", (other, size)))
    return Case(
        scenario=(
            f"ZeRO-3 with images on some micro batches. Ranks {list(few)} had text only: they gather the parameters of "
            f"`layer_0` ({size} elements). The others gather those of `vision_tower` ({other}) at the same sequence number. "
            "Detail mode has logged the difference."
        ),
        files=job.files,
        truth=differing(*few, by=Mismatch.SIZE),
    )


def _half_no_image(draw: Draw) -> Case:
    world = draw.world(4, 16)
    few = draw.ranks(world // 2, range(world))
    job, *_ = _branch(draw, Op.ALL_GATHER, few, world, _TEXT_ONLY)
    return Case(
        scenario=f"Half of the ranks, {list(few)}, gather the parameters of `layer_0`, the other half those of `vision_tower`.",
        files=job.files,
        truth=differing(by=Mismatch.SIZE, candidates=tuple(range(world))),
    )


def _fingerprint_only(draw: Draw) -> Case:
    job = Job(draw, draw.world(4, 16))
    size, other = draw.sizes(2)
    for rank in job.ranks[1:]:
        job.log(rank, fingerprints((rank, 0), 2373, "_ALLGATHER_BASE", (other, size)))
    answers = (NOT_SURE, Answer(kind=Kind.DESYNC, culprits=(0,)))
    return Case(
        scenario=(
            f"Only logs are left. Ranks 1 to {len(job.ranks) - 1} each say that rank 0 runs operation 2373 with {size} "
            f"elements and they themselves with {other}."
        ),
        files=job.files,
        truth=replace(differing(by=Mismatch.SIZE), acceptable=answers),
        is_ended_unsaid=True,
    )


def _short_backward(draw: Draw) -> tuple[Job, tuple[int, ...]]:
    world = draw.world(8, 32)
    few = draw.minority(world)
    job = Job(draw, world)
    forward, backward = (
        job.at(op, draw.own(name, "zero3.py"))
        for op, name in ((Op.ALL_GATHER, "pre_forward"), (Op.REDUCE_SCATTER, "post_backward"))
    )
    job.issue(Op.ALL_GATHER, 7168, at=forward, times=10)
    job.issue(Op.REDUCE_SCATTER, 7168, at=backward, times=15)
    job.issue(Op.REDUCE_SCATTER, 7168, ranks=job.others(*few), at=backward, is_done=False)
    job.issue(Op.ALL_REDUCE, 1, ranks=few, at=job.at(Op.ALL_REDUCE, draw.own("grad_norm", "optimizer.py")), is_done=False)
    return job, few


def _dummy_forward(draw: Draw) -> Case:
    job, few = _short_backward(draw)
    return Case(
        scenario=(
            f"Ranks {list(few)} had fewer samples and ran a padded forward pass whose loss is not part of the total. They wait "
            "in the optimizer's all_reduce of one element; the others are at the same sequence number in a reduce_scatter of "
            "backward. The forward passes had equally many operations."
        ),
        files=job.files,
        truth=differing(*few, by=Mismatch.OP),
    )


def _dumps_of_the_few_lost(draw: Draw) -> Case:
    job, few = _short_backward(draw)
    job.unseen(*few)
    return Case(
        scenario=(
            f"All ranks that were seen wait in one reduce_scatter of backward. Ranks {list(few)} left neither dump nor stack."
        ),
        files=job.files,
        truth=unknown_because("those that differ were not seen"),
    )


def _legal_uneven(draw: Draw) -> Case:
    job = Job(draw, draw.world(4, 16))
    experts = job.group("EXPERT_MODEL_PARALLEL_GROUP", job.ranks)
    share = len(job.ranks)
    for rank in job.ranks:
        job.issue(
            Op.ALL_TO_ALL,
            group=experts,
            ranks=[rank],
            input_sizes=((64 + rank, 512),),
            output_sizes=((63 + share - rank, 512),),
        )
    job.issue(Op.ALL_REDUCE, 8)
    job.unseen(*job.ranks, dumps=False)
    return Case(
        scenario="Every rank's all_to_all has another size; sums agree, and all operations are done.",
        files=job.files,
        truth=HEALTHY,
    )


def _conditional_parameters(draw: Draw) -> Case:
    world = draw.world(8)
    few = draw.minority(world)
    job, size, other = _branch(draw, Op.REDUCE_SCATTER, few, world, ("post_backward_text", "post_backward_image"))
    return Case(
        scenario=(
            f"FSDP2; some parameters have gradients on some ranks only. Ranks {list(few)} wait in a reduce_scatter of {size} "
            f"elements, the others in one of {other}, at the same sequence number."
        ),
        files=job.files,
        truth=differing(*few, by=Mismatch.SIZE),
    )


def _half_conditional(draw: Draw) -> Case:
    world = draw.world(4, 16)
    few = draw.ranks(world // 2, range(world))
    job, *_ = _branch(draw, Op.REDUCE_SCATTER, few, world, ("post_backward_text", "post_backward_image"))
    return Case(
        scenario=f"Ranks {list(few)}, half of them, wait in a reduce_scatter of another size than the other half.",
        files=job.files,
        truth=differing(by=Mismatch.SIZE, candidates=tuple(range(world))),
    )


_CUDA_OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.42 GiB. GPU 0 has a total capacity of 79.15 GiB"


def _out_of_memory(draw: Draw, *, is_told: bool) -> tuple[Job, int]:
    job = Job(draw, draw.world(4, 16))
    culprit = draw.rank(job.ranks)
    job.step(4)
    job.issue(Op.ALL_GATHER, 262_144, ranks=job.others(culprit), is_done=False)
    if is_told:
        job.log(culprit, traceback(culprit, _CUDA_OOM, (f"{draw.app}/model.py", 77, "forward")))
        job.end(culprit, 1)
    for rank in job.ranks:
        is_dead = is_told and rank == culprit
        job.gpu(rank, util=0 if is_dead else 100, power_w=72 if is_dead else 180)
    return job, culprit


def _memory_error_ends_it(draw: Draw) -> Case:
    job, culprit = _out_of_memory(draw, is_told=True)
    return Case(
        scenario=(
            f"Rank {culprit} logged a CUDA out-of-memory traceback; its process is gone (exit code 1) and its GPU is idle. The "
            "others wait in an all_gather with their GPUs at 100 %."
        ),
        files=job.files,
        truth=Truth(kind=Kind.DEAD_RANK, cause=Cause.EXCEPTION, culprits=(culprit,), victims_exclude=(culprit,)),
    )


def _skips_the_batch(draw: Draw) -> Case:
    world = draw.world(8, 32)
    culprit = draw.rank(range(world))
    job, *_ = _branch(draw, Op.ALL_REDUCE, (culprit,), world, ("catch_up_batch", "train_step"))
    job.log(culprit, f"2026-11-29 14:03:11,412 | WARNING | trainer | OOM on rank {culprit}, skipping batch\n")
    return Case(
        scenario=(
            f"Rank {culprit} logged that it ran out of memory and skipped the batch; it lives. At the same sequence number it "
            "waits in an all_reduce of another size than all others, called from `catch_up_batch`."
        ),
        files=job.files,
        truth=differing(culprit, by=Mismatch.SIZE),
    )


def _everyone_spins(draw: Draw) -> Case:
    job = Job(draw, draw.world(4, 16))
    for rank in job.ranks:
        job.gpu(rank, util=100, power_w=180)
        job.log(rank, timeout(rank, 900 + rank / 10, 4120, "ALLGATHER", numel=262_144))
    return Case(
        scenario=(
            "Every GPU is at 100 %. Every rank's watchdog logs the same time-out of the same all_gather. No process ended "
            "before, nothing else was logged, and there are no dumps and no stacks."
        ),
        files=job.files,
        truth=unknown_because("all look alike", acceptable=(Answer(kind=Kind.COMM_STUCK),)),
        is_ended_unsaid=True,
    )


FAMILIES = (
    Family(
        number="C08",
        title="out of memory on one worker",
        variants=(reported(_memory_error_ends_it), near_miss(_skips_the_batch), less_seen(_everyone_spins, _LOG)),
    ),
    Family(
        number="C10",
        title="text-only micro batch skips the vision tower",
        variants=(reported(_no_image), near_miss(_half_no_image), less_seen(_fingerprint_only, _LOG)),
    ),
    Family(
        number="C11",
        title="dummy forward without a backward",
        variants=(reported(_dummy_forward), near_miss(_legal_uneven), less_seen(_dumps_of_the_few_lost)),
    ),
    Family(
        number="C13",
        title="parameters used on some ranks only",
        variants=(reported(_conditional_parameters), near_miss(_half_conditional)),
    ),
)
