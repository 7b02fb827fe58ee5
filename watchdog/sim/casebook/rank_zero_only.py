"""Ranks that decide alone whether to save, stop or recover, and so issue what the others do not (C04, C05, C07, C16)."""

from pardbg.watchdog.model.names import Cause, Edit, Kind, Mismatch
from pardbg.watchdog.sim.casebook.case import Case, Family, less_seen, near_miss, reported
from pardbg.watchdog.sim.casebook.draw import Draw
from pardbg.watchdog.sim.casebook.job import Job
from pardbg.watchdog.sim.casebook.lines import traceback
from pardbg.watchdog.sim.instruction import Op
from pardbg.watchdog.sim.truth import HEALTHY, Answer, Truth, unknown_because


def differing(*culprits: int, by: Mismatch, edit: Edit | None = None, candidates: tuple[int, ...] = ()) -> Truth:
    """The truth of ranks that issued something else."""
    return Truth(kind=Kind.DESYNC, culprits=culprits, victims_exclude=culprits, mismatch=by, edit=edit, candidates=candidates)


def _saves_where_others_train(draw: Draw, saving: tuple[int, ...], world: int) -> Job:
    job = Job(draw, world)
    job.step(draw.number(3, 9))
    small, large = sorted(draw.sizes(2))
    save = job.at(
        Op.ALL_GATHER, draw.own("full_state", "fsdp_io.py"), draw.own("save_if_best", "checkpoint.py"), base=job.base[1:]
    )
    forward = job.at(Op.ALL_GATHER, draw.own("unshard", "fsdp.py"), draw.own("forward", "model.py"))
    job.issue(Op.ALL_GATHER, large, ranks=saving, at=save, is_done=False)
    job.issue(Op.ALL_GATHER, small, ranks=job.others(*saving), at=forward, is_done=False)
    return job


_C04 = "After validation the ranks go different ways. {saving} wait in an all_gather called from `save_if_best`, the others in "
_C04 += "an all_gather of another size called from `forward`. Both have the same sequence number in the same group."


def _few_save(draw: Draw) -> Case:
    world = draw.world(8)
    saving = draw.minority(world)
    job = _saves_where_others_train(draw, saving, world)
    return Case(
        scenario=f"{world} ranks train with FSDP. " + _C04.format(saving=f"Ranks {list(saving)}"),
        files=job.files,
        truth=differing(*saving, by=Mismatch.SIZE),
    )


def _half_save(draw: Draw) -> Case:
    world = draw.world(4, 16)
    saving = draw.ranks(world // 2, range(world))
    job = _saves_where_others_train(draw, saving, world)
    return Case(
        scenario=f"{world} ranks train with FSDP. " + _C04.format(saving=f"Ranks {list(saving)}, which is half of them,"),
        files=job.files,
        truth=differing(by=Mismatch.SIZE, candidates=tuple(range(world))),
    )


def _few_save_no_frames(draw: Draw) -> Case:
    world = draw.world(8)
    saving = draw.minority(world)
    job = _saves_where_others_train(draw, saving, world)
    job.unseen(*job.ranks, dumps=False)
    job.is_json = True
    return Case(
        scenario=(
            f"{world} ranks: {list(saving)} wait in an all_gather of another size than the others; no call sites are recorded."
        ),
        files=job.files,
        truth=differing(*saving, by=Mismatch.SIZE),
    )


def _checkpoint_or_step(draw: Draw, world: int, saving: int) -> Job:
    job = Job(draw, world, backend=draw.backend)
    job.step(draw.number(3, 9))
    save = job.at(Op.BROADCAST, draw.own("on_validation_end", "model_checkpoint.py"), base=job.base[1:])
    job.issue(Op.BROADCAST, 1, ranks=[saving], at=save, is_done=False, root=0)
    job.issue(Op.ALL_REDUCE, 4_194_304, ranks=job.others(saving), is_done=False)
    return job


def _one_against_one(draw: Draw) -> Case:
    job = _checkpoint_or_step(draw, 2, draw.rank(range(2)))
    return Case(
        scenario=(
            "Two ranks train with DDP; the checkpoint callback watches a metric that is not reduced. At the same sequence "
            "number one rank waits in a broadcast called from the callback, the other in the all_reduce of the backward pass."
        ),
        files=job.files,
        truth=differing(by=Mismatch.OP, candidates=(0, 1)),
    )


def _one_against_many(draw: Draw) -> Case:
    world = draw.world(4, 32)
    saving = draw.rank(range(world))
    return Case(
        scenario=(
            f"{world} ranks train with DDP. At the same sequence number rank {saving} waits in a broadcast called from the "
            "checkpoint callback, all others in the all_reduce of the backward pass."
        ),
        files=_checkpoint_or_step(draw, world, saving).files,
        truth=differing(saving, by=Mismatch.OP),
    )


def _one_of_two_seen(draw: Draw) -> Case:
    job = _checkpoint_or_step(draw, 2, draw.rank(range(2)))
    lost = draw.rank(range(2))
    job.unseen(lost)
    return Case(
        scenario=f"Of two ranks only rank {1 - lost} left a dump: it waits in a collective. Of rank {lost} nothing is known.",
        files=job.files,
        truth=unknown_because("one side was not seen"),
    )


def _handler_saves(draw: Draw, *handler: str) -> tuple[Job, int]:
    job = Job(draw, draw.world(4, 32))
    culprit = draw.rank(job.ranks)
    job.step(draw.number(3, 9))
    frames = [draw.own(name, "checkpointing.py") for name in ("broadcast_name", "save_checkpoint", *handler)]
    job.issue(Op.BROADCAST, 256, ranks=[culprit], at=job.at(Op.BROADCAST, *frames, base=job.base[1:]), is_done=False)
    job.issue(Op.ALL_REDUCE, 4_194_304, ranks=job.others(culprit), is_done=False)
    return job, culprit


def _saves_on_exception(draw: Draw) -> Case:
    job, culprit = _handler_saves(draw, "on_exception")
    where = ((f"{draw.app}/{draw.entry_file}", 188, "train_step"), (f"{draw.app}/losses.py", 97, "check_loss"))
    job.log(culprit, traceback(culprit, "FloatingPointError: loss is nan at step 412", *where))
    return Case(
        scenario=(
            f"Rank {culprit} logged a traceback (loss is nan). Its process lives; its stack is a broadcast below "
            "`save_checkpoint`, below `on_exception`. The others wait in the all_reduce of the step."
        ),
        files=job.files,
        truth=Truth(kind=Kind.DEAD_RANK, cause=Cause.EXCEPTION, culprits=(culprit,), also=((culprit,),)),
    )


def _saves_alone(draw: Draw) -> Case:
    job, culprit = _handler_saves(draw, "on_step_end")
    return Case(
        scenario=(
            f"Rank {culprit} waits in a broadcast below `save_checkpoint`, below `on_step_end`; nothing was logged. The others "
            "wait at the same sequence number in the all_reduce of the step."
        ),
        files=job.files,
        truth=differing(culprit, by=Mismatch.OP),
    )


def _log_of_the_exception_lost(draw: Draw) -> Case:
    job, culprit = _handler_saves(draw, "on_exception")
    files, truth = job.files, differing(culprit, by=Mismatch.OP)
    answer = Answer(kind=Kind.DEAD_RANK, cause=Cause.EXCEPTION, culprits=(culprit,))
    return Case(
        scenario=(
            f"Rank {culprit} waits in a broadcast below `save_checkpoint`, below `on_exception`; its log is lost. The others "
            "wait at the same sequence number in the all_reduce of the step."
        ),
        files=files,
        truth=Truth(
            **{name: getattr(truth, name) for name in truth.__struct_fields__ if name != "acceptable"}, acceptable=(answer,)
        ),
    )


def _hidden_save(draw: Draw, *, has_frames: bool = True) -> Job:
    """Rank 0 issues one operation more; it fits by its arguments for some time."""
    job = Job(draw, draw.world(4, 32), backend=draw.backend)
    step = job.at(Op.ALL_REDUCE)
    job.issue(Op.ALL_REDUCE, 1024, at=step, times=5)
    extra = job.at(Op.ALL_REDUCE, draw.own("hidden_save", "checkpointing.py"))
    for number in range(4):
        job.issue(Op.ALL_REDUCE, 1024, ranks=[0], at=extra if number == 0 else step, is_done=number < 3)
        job.issue(
            Op.ALL_REDUCE if number < 3 else Op.BARRIER,
            1024,
            ranks=job.others(0),
            at=step if number < 3 else job.at(Op.BARRIER, base=job.base[1:]),
            is_done=number < 3,
        )
    if not has_frames:
        job.is_json = True
        job.unseen(*job.ranks, dumps=False)
    return job


def _extra_operation(draw: Draw) -> Case:
    job = _hidden_save(draw)
    return Case(
        scenario=(
            f"{len(job.ranks)} ranks; all operations have the same size. Five steps have the same call site everywhere. Then "
            "rank 0 records an all_reduce called from `hidden_save` where the others record one of the step; three more match "
            "by size. In the end the others wait in a barrier and rank 0 in an all_reduce."
        ),
        files=job.files,
        truth=differing(0, by=Mismatch.CALL_SITE, edit=Edit.EXTRA),
    )


def _root_calls_elsewhere(draw: Draw) -> Case:
    job = Job(draw, draw.world(4, 32), backend=draw.backend)
    root, rest = (job.at(Op.BROADCAST, draw.own(name, "data.py")) for name in ("send_batch", "receive_batch"))
    for _ in range(draw.number(3, 8)):
        job.issue(Op.BROADCAST, 2048, ranks=[0], at=root, root=0)
        job.issue(Op.BROADCAST, 2048, ranks=job.others(0), at=rest, root=0)
        job.issue(Op.ALL_REDUCE, 1024)
    job.unseen(*job.ranks, dumps=False)
    return Case(
        scenario="In every step rank 0 broadcasts from a line of its own, in `send_batch`; all operations are done.",
        files=job.files,
        truth=HEALTHY,
    )


def _extra_without_frames(draw: Draw) -> Case:
    job = _hidden_save(draw, has_frames=False)
    return Case(
        scenario=(
            "All ranks recorded the same operations up to the last, where rank 0 waits in an all_reduce and the others in a "
            "barrier. No call sites were recorded."
        ),
        files=job.files,
        truth=differing(0, by=Mismatch.OP),
    )


FAMILIES = (
    Family(
        number="C04",
        title="ranks disagree whether to save",
        variants=(reported(_few_save), near_miss(_half_save), less_seen(_few_save_no_frames)),
    ),
    Family(
        number="C05",
        title="a checkpoint's metric that was not reduced",
        variants=(reported(_one_against_one), near_miss(_one_against_many), less_seen(_one_of_two_seen)),
    ),
    Family(
        number="C07",
        title="an exception handler enters a collective",
        variants=(reported(_saves_on_exception), near_miss(_saves_alone), less_seen(_log_of_the_exception_lost)),
    ),
    Family(
        number="C16",
        title="a save that only rank 0 enters",
        variants=(reported(_extra_operation), near_miss(_root_calls_elsewhere), less_seen(_extra_without_frames)),
    ),
)
