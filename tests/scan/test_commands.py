"""The commands that a report proposes: on the host of whom they are about, as a shell takes them."""

import shlex
from dataclasses import replace

import pytest

from pardbg.collectors.jobs.kubernetes.fate import Fate, PodFate
from pardbg.collectors.jobs.kubernetes.job import KubernetesJob
from pardbg.collectors.jobs.slurm.job import SlurmJob, SlurmPart
from pardbg.collectors.parsing.kubernetes_record import KubernetesPod
from pardbg.collectors.parsing.slurm_record import SlurmState
from pardbg.watchdog.correlators.commands import fill
from pardbg.watchdog.model.reach import NO_WAY, Reach
from pardbg.watchdog.model.report import Action
from pardbg.watchdog.scan.attaching import Policy
from pardbg.watchdog.scan.nodes.by_hand import over_kubectl, over_srun, over_ssh
from pardbg.watchdog.scan.scan import Settings, scan
from tests.diagnosis.live_evidence import IN_LOOP, Seen, frame, job_of, sleeps, waits
from tests.scan.standing_site import StandingSite

SLURM = SlurmJob(spelled="7", job_id=7, uid=0, state=SlurmState.RUNNING, nodes=("n1", "n2"))
SECOND = SlurmPart(het_offset=1, job_id=8, nodes=("n2",))
HET = SlurmJob(spelled="7", job_id=7, het_job_id=7, uid=0, state=SlurmState.RUNNING, parts=(SECOND,))
POD = PodFate(pod=KubernetesPod(name="n2", namespace="lab"), fate=Fate.RUNS, container="train")
KUBERNETES = KubernetesJob(namespace="lab", name="exp7", fates=(POD,))
STOPPED, STUCK = replace(waits(), state="T"), replace(sleeps(), state="D", system_call="openat", blocked_on=None)
SRUN = "srun --jobid=7 --overlap -N1 -n1 --mem=0 -w n2"
SAVING = "/opt/venv/lib/python3.11/site-packages/torch/serialization.py"
LOOK = "cat /proc/1002/stack; findmnt -t nfs,nfs4,lustre,fuse"


def action_of(culprit: Seen, reach: Reach) -> Action:
    """Rank 2, on n2, is the culprit; the scan ran on n1."""
    site = StandingSite(job_of(waits(), waits(), culprit, waits()), reach=reach)
    verdict = scan(site, Settings(interval_s=0.1, policy=Policy.NEVER), lambda _: None).report.verdict
    assert verdict is not None
    assert [subject.rank for subject in verdict.culprits] == [2]
    return verdict.actions[0]


@pytest.mark.parametrize(
    ("reach", "stopped", "stuck"),
    [
        (over_ssh({}), "ssh n2 kill -CONT 1002", f"ssh n2 {shlex.quote(LOOK)}"),
        (over_ssh({"n2": "ada@n2"}), "ssh ada@n2 kill -CONT 1002", f"ssh ada@n2 {shlex.quote(LOOK)}"),
        (over_srun(SLURM), f"{SRUN} kill -CONT 1002", f"{SRUN} sh -c {shlex.quote(LOOK)}"),
        (over_srun(HET), f"{SRUN} --het-group=1 kill -CONT 1002", f"{SRUN} --het-group=1 sh -c {shlex.quote(LOOK)}"),
        (
            over_kubectl(KUBERNETES),
            "kubectl exec -n lab n2 -c train -- kill -CONT 1002",
            f"kubectl exec -n lab n2 -c train -- sh -c {shlex.quote(LOOK)}",
        ),
        (Reach(before="ssh", here="n2.lab"), "kill -CONT 1002", LOOK),
    ],
)
def test_command_leads_to_the_host_of_the_culprit(reach: Reach, stopped: str, stuck: str) -> None:
    assert action_of(STOPPED, reach).command == stopped
    assert action_of(STUCK, reach).command == stuck


def test_where_no_way_is_known_the_words_name_the_host() -> None:
    action = action_of(STOPPED, NO_WAY)
    assert (action.text[:7], action.command) == ("on n2: ", "kill -CONT 1002")


def test_many_culprits_are_not_as_many_steps() -> None:
    job = job_of(*(waits() if rank < 2 else STOPPED for rank in range(12)))
    verdict = scan(StandingSite(job), Settings(interval_s=0.1, policy=Policy.NEVER), lambda _: None).report.verdict
    assert verdict is not None
    assert [action.command for action in verdict.actions] == [*(f"kill -CONT {1000 + rank}" for rank in range(2, 10)), None]
    assert verdict.actions[-1].text == "the same of 2 more ranks"


def test_part_of_a_command_that_needs_what_is_not_known_is_left_out() -> None:
    reads = replace(sleeps(), system_call="read", blocked_on="/data/shard 7.bin (nfs)", state="S")
    assert action_of(reads, NO_WAY).command == "ls -l /proc/1002/fd"
    saves = replace(waits(), frames=(frame("save", 944, SAVING), *IN_LOOP), system_call="write", blocked_on=None)
    assert action_of(saves, NO_WAY).command is None
    known = replace(saves, blocked_on="/ckpt/a b.pt (nfs)")
    assert action_of(known, NO_WAY).command == "findmnt -T '/ckpt/a b.pt'; stat -f '/ckpt/a b.pt'"
    assert fill("py-spy dump --pid PID; lslocks", None, "") == "lslocks"
    assert over_ssh({}).on("n2", known.blocked_on or "") == "ssh n2 '/ckpt/a b.pt (nfs)'"
