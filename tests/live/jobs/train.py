"""Trains a small model on every rank and averages the gradients by hand; with `--fault`, one rank stops on the host.

`torchrun --nproc-per-node 4 train.py --fault lock`. Every fault is what people write: a subclass of the trainer that all ranks
run, in which rank 2 comes to a halt at step 10, just after it has touched the file named by READY_FILE. It runs in the current
directory and writes its checkpoints and its data there.
"""

import argparse
import ctypes
import fcntl
import hashlib
import logging
import os
import queue
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import BinaryIO

import torch
import torch.distributed as dist

CULPRIT = 2
FAULTY_STEP = 10
CHECKPOINT_EVERY = 5
STEP_COUNT = 1_000_000
WIDTH = 256  # a checkpoint of 256 KiB, four times what a pipe holds
FOR_EVER_S = 3600.0
TIMEOUT = timedelta(hours=1)
PLANTED = "PLANTED-SECRET"

log = logging.getLogger("train")


class Trainer:
    """Data-parallel training of one linear layer. It has no fault."""

    keeps_container = False

    def __init__(self, options: argparse.Namespace) -> None:
        self.rank = dist.get_rank()
        self.step = 0
        self.step_s: float = options.step_s
        self.is_uneven: bool = options.uneven
        self.ready_step: int = options.ready_step
        self.for_s: float = options.for_s
        self.step_count: int = options.steps
        self.generator = torch.Generator().manual_seed(self.rank)
        torch.manual_seed(0)  # two runs end with the same loss
        self.model = torch.nn.Linear(WIDTH, WIDTH)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-3)
        self.store = dist.distributed_c10d._get_default_store()

    @property
    def is_faulty(self) -> bool:
        """Whether this is the rank and the step."""
        return self.rank == CULPRIT and self.step == FAULTY_STEP

    def run(self) -> None:
        """Trains to the end."""
        self.train()
        self.finish()

    def train(self) -> None:
        """The training loop."""
        for step in range(self.step_count):
            self.step = step
            self.train_one_step(self.load_batch())
            if step % CHECKPOINT_EVERY == 0:
                self.save_checkpoint()
            self.after_step()

    def load_batch(self) -> torch.Tensor:
        """Makes the next batch."""
        return torch.randn(4, WIDTH, generator=self.generator)

    def train_one_step(self, batch: torch.Tensor) -> None:
        """Forward, backward, communication, update."""
        loss = self.compute(batch)
        self.average_gradients()
        self.optimizer.step()
        self.report(loss)

    def compute(self, batch: torch.Tensor) -> torch.Tensor:
        """Forward and backward; the sleep stands for the device. Ranks differ by a tenth, or all wait for rank 2."""
        self.optimizer.zero_grad()
        loss: torch.Tensor = self.model(batch).square().mean()
        torch.autograd.backward(loss)
        share = float(self.rank == CULPRIT) if self.is_uneven else 0.9 + 0.1 * torch.rand(1, generator=self.generator).item()
        time.sleep(self.step_s * share)
        return loss.detach()

    def average_gradients(self) -> None:
        """Averages over all ranks."""
        for parameter in self.model.parameters():
            assert parameter.grad is not None
            dist.all_reduce(parameter.grad)
            parameter.grad.div_(dist.get_world_size())

    def report(self, loss: torch.Tensor) -> None:
        """Logs the mean loss on rank 0."""
        mean = loss.reshape(1)
        dist.all_reduce(mean)
        if self.rank == 0:
            log.info("step %d loss %.4f", self.step, mean.item() / dist.get_world_size())

    def save_checkpoint(self) -> None:
        """Every rank writes its shard, then waits for the others."""
        with self.open_shard() as file:
            torch.save({"model": self.model.state_dict(), "step": self.step}, file)
        dist.barrier()

    def open_shard(self) -> BinaryIO:
        """Where this rank's shard goes."""
        return Path(f"shard_{self.rank}.pt").open("wb")

    def after_step(self) -> None:
        """For callbacks. Here it tells the test that training has come this far."""
        if self.rank == CULPRIT and self.step == self.ready_step:
            announce()

    def finish(self) -> None:
        """The last thing all ranks do together."""
        dist.barrier()


def announce() -> None:
    """Tells the test that the fault comes now."""
    Path(os.environ["READY_FILE"]).touch()


def stuck_pipe(name: str) -> str:
    """A file that behaves like one on a dead server: opening it works, reading it never returns, nor does a long write."""
    if not Path(name).exists():
        os.mkfifo(name)
    os.open(name, os.O_RDWR | os.O_NONBLOCK)
    return name


# --- Storage and input ---


class Checkpoint(Trainer):
    """The file system takes no more of the checkpoint."""

    def open_shard(self) -> BinaryIO:
        """Opens the shard, which lies on a dead server."""
        if not self.is_faulty:
            return super().open_shard()
        path = stuck_pipe("shard_stuck.pt")
        announce()
        return open(path, "wb")  # noqa: PTH123


class CheckpointByPath(Trainer):
    """As before, but torch itself opens the file, in C++."""

    def save_checkpoint(self) -> None:
        """Saves to a path."""
        path = f"shard_{self.rank}.pt"
        if self.is_faulty:
            path = stuck_pipe("shard_stuck.pt")
            announce()
        torch.save({"model": self.model.state_dict(), "step": self.step}, path)
        dist.barrier()


class ReadsPipe(Trainer):
    """The batch comes through a pipe whose other end says nothing."""

    def load_batch(self) -> torch.Tensor:
        """Reads as many bytes as a batch needs."""
        if not self.is_faulty:
            return super().load_batch()
        reader, _writer = os.pipe()
        announce()
        return torch.frombuffer(bytearray(os.read(reader, 4 * WIDTH)), dtype=torch.float32)


class ReadsFile(Trainer):
    """The batch is in a file whose server does not answer."""

    def load_batch(self) -> torch.Tensor:
        """Reads the whole file."""
        if not self.is_faulty:
            return super().load_batch()
        path = Path(stuck_pipe("batch.bin"))
        announce()
        return torch.frombuffer(bytearray(path.read_bytes()), dtype=torch.float32)


class OpensFile(Trainer):
    """Opening the file never returns."""

    def load_batch(self) -> torch.Tensor:
        """Opens the file and reads it."""
        if not self.is_faulty:
            return super().load_batch()
        os.mkfifo("batch.bin")
        announce()
        with Path("batch.bin").open("rb") as file:
            return torch.frombuffer(bytearray(file.read()), dtype=torch.float32)


class Receives(Trainer):
    """The batch comes from a server that has accepted and says nothing."""

    def load_batch(self) -> torch.Tensor:
        """Asks the server."""
        if not self.is_faulty:
            return super().load_batch()
        server = socket.create_server(("127.0.0.1", 0))
        with socket.create_connection(server.getsockname()) as client:
            announce()
            return torch.frombuffer(bytearray(client.recv(4 * WIDTH)), dtype=torch.float32)


class ReadsSlowly(Trainer):
    """No fault: rank 2 reads 200 MB at 10 MB/s and goes on."""

    def load_batch(self) -> torch.Tensor:
        """Reads a new part of the data set, now and then."""
        if self.is_faulty:
            self.read_part(Path("part.bin"))
        return super().load_batch()

    def read_part(self, path: Path) -> None:
        """Reads in pieces, as fast as the server gives them."""
        with path.open("wb") as file:
            file.truncate(200_000_000)
        announce()
        with path.open("rb", buffering=0) as file:
            while file.read(1_000_000):
                time.sleep(0.1)

    def after_step(self) -> None:
        """It has told the test when it began to read; a later sign would say nothing."""


class Batches(torch.utils.data.Dataset[torch.Tensor]):
    """Batches that loader workers make; on rank 2 the worker stops at one."""

    def __init__(self, rank: int, read: Callable[[], None]) -> None:
        self.rank = rank
        self.read = read

    def __len__(self) -> int:
        """Endless, for our purpose."""
        return STEP_COUNT

    def __getitem__(self, index: int) -> torch.Tensor:
        """Makes one."""
        if self.rank == CULPRIT and index == FAULTY_STEP:
            announce()
            self.read()
        return torch.full((4, WIDTH), float(index % 7))


class Loader(Trainer):
    """A worker of the data loader reads a file whose server does not answer."""

    def __init__(self, options: argparse.Namespace) -> None:
        super().__init__(options)
        data = Batches(self.rank, self.read_sample)
        self.batches: Iterator[torch.Tensor] = iter(torch.utils.data.DataLoader(data, batch_size=None, num_workers=1))

    @staticmethod
    def read_sample() -> None:
        """Runs in the worker."""
        Path(stuck_pipe("sample.bin")).read_bytes()

    def load_batch(self) -> torch.Tensor:
        """Takes it from the worker."""
        return next(self.batches)


class LoaderSleeps(Loader):
    """A worker of the data loader retries, with a long pause."""

    @staticmethod
    def read_sample() -> None:
        """Runs in the worker."""
        time.sleep(FOR_EVER_S)


# --- Threads, locks, loops ---


class Locks(Trainer):
    """Takes a lock that it already has."""

    def __init__(self, options: argparse.Namespace) -> None:
        super().__init__(options)
        self.lock = threading.Lock()

    def load_batch(self) -> torch.Tensor:
        """Takes the lock of the cache."""
        with self.lock:
            return self.read_cache()

    def read_cache(self) -> torch.Tensor:
        """Takes it again, where the cache is empty."""
        if self.is_faulty:
            announce()
            with self.lock:
                log.info("cache miss")
        return super().load_batch()


class WaitsForQueue(Trainer):
    """Waits for a thread that has ended."""

    def load_batch(self) -> torch.Tensor:
        """Takes the batch from a thread that prefetches."""
        batches: queue.Queue[torch.Tensor] = queue.Queue()
        if not self.is_faulty:
            batches.put(super().load_batch())
        else:
            announce()
        return batches.get()


class LocksFile(Trainer):
    """Waits for a lock on a file that somebody has left locked."""

    def load_batch(self) -> torch.Tensor:
        """Reads the index under its lock."""
        if not self.is_faulty:
            return super().load_batch()
        with Path("index.lock").open("w") as left_over, Path("index.lock").open("w") as lock:
            fcntl.flock(left_over, fcntl.LOCK_EX)
            announce()
            fcntl.flock(lock, fcntl.LOCK_EX)
        return super().load_batch()


class HoldsGil(Trainer):
    """Calls into a C library that keeps the interpreter's lock and waits."""

    def load_batch(self) -> torch.Tensor:
        """Decodes a batch with a library of our own."""
        if self.is_faulty:
            announce()
            ctypes.PyDLL(None).sleep(int(FOR_EVER_S))
        return super().load_batch()


class Spins(Trainer):
    """Polls for something that never comes."""

    has_batch = False

    def load_batch(self) -> torch.Tensor:
        """Waits for the prefetching thread."""
        if self.is_faulty:
            announce()
            while not self.has_batch:
                pass
        return super().load_batch()


class Matches(Trainer):
    """A regular expression that takes longer than the universe, in C, with the interpreter's lock."""

    def load_batch(self) -> torch.Tensor:
        """Cleans a text."""
        if self.is_faulty:
            announce()
            re.match(r"(a+)+$", "a" * 60 + "b")
        return super().load_batch()


class Hashes(Trainer):
    """Native code that works for hours without the interpreter's lock."""

    def load_batch(self) -> torch.Tensor:
        """Derives the key of an encrypted data set."""
        if self.is_faulty:
            announce()
            hashlib.pbkdf2_hmac("sha256", b"data set", b"salt", 2**31 - 1)
        return super().load_batch()


class Sleeps(Trainer):
    """A callback waits between attempts."""

    def after_step(self) -> None:
        """Asks a server for new settings, with a long pause after a failure."""
        if self.is_faulty:
            announce()
            time.sleep(FOR_EVER_S)


class WaitsForCommand(Trainer):
    """A callback runs a program that never ends."""

    def after_step(self) -> None:
        """Uploads with a tool."""
        if self.is_faulty:
            announce()
            subprocess.run(["sleep", str(int(FOR_EVER_S))], check=True)  # noqa: S607


class StopsItself(Trainer):
    """A process that is stopped between two collectives. ``RunningJob.stop`` stops one wherever it is."""

    def load_batch(self) -> torch.Tensor:
        """Stops, as by a job control signal."""
        if self.is_faulty:
            announce()
            os.kill(os.getpid(), signal.SIGSTOP)
        return super().load_batch()


class AsksStore(Trainer):
    """Asks the store for a key that nobody sets."""

    def load_batch(self) -> torch.Tensor:
        """Looks up which shard is next."""
        if self.is_faulty:
            announce()
            self.store.get(f"shard-of-step/{self.step}")
        return super().load_batch()


class WaitsForStore(Trainer):
    """Waits for keys that nobody sets."""

    def load_batch(self) -> torch.Tensor:
        """Waits until the shard is announced."""
        if self.is_faulty:
            announce()
            self.store.wait([f"shard-of-step/{self.step}"], TIMEOUT)
        return super().load_batch()


# --- Leaving the loop ---


class LeavesAndLingers(Trainer):
    """Has less data, returns from ``train``; the main function keeps the container for later."""

    keeps_container = True

    def run(self) -> None:
        """Trains to the end of its data."""
        if self.rank == CULPRIT:
            self.step_count = FAULTY_STEP
        self.train()
        announce()


class LeavesByBreak(Trainer):
    """Has less data, leaves the loop and stays in the function."""

    def train(self) -> None:
        """The training loop."""
        for step in range(self.step_count):
            self.step = step
            if self.is_faulty:
                break
            self.train_one_step(self.load_batch())
        log.info("rank %d has no more data", self.rank)
        announce()
        time.sleep(FOR_EVER_S)


class LeavesAndServes(Trainer):
    """Has less data, and waits for somebody to fetch the results."""

    def run(self) -> None:
        """Trains to the end of its data."""
        if self.rank == CULPRIT:
            self.step_count = FAULTY_STEP
        super().run()

    def finish(self) -> None:
        """Serves the results."""
        with socket.create_server(("127.0.0.1", 0)) as server:
            announce()
            connection, _ = server.accept()
            connection.close()


# --- Exceptions that nobody hears of ---


class BadRecord(Trainer):
    """Meets a record that it cannot read."""

    def load_batch(self) -> torch.Tensor:
        """Decodes the next batch."""
        if self.is_faulty:
            self.decode(b"\xff" * 8)
        return super().load_batch()

    def decode(self, record: bytes) -> torch.Tensor:
        """Checks the header."""
        raise ValueError(f"bad record at step {self.step}: header {record.hex()}")


class LogsAndSleeps(BadRecord):
    """Logs the exception, then stays for whoever wants to look."""

    def run(self) -> None:
        """Trains, whatever happens."""
        try:
            self.train()
        except Exception:
            log.exception("training failed")
            announce()
            time.sleep(FOR_EVER_S)


class LogsAndReturns(BadRecord):
    """Logs the exception where it comes from; the main function keeps the container."""

    keeps_container = True

    def run(self) -> None:
        """Trains, whatever happens."""
        try:
            self.train()
        except Exception:
            log.exception("training failed")
            announce()


class CleansUp(BadRecord):
    """On the way out, a ``finally`` waits for an upload that nobody takes."""

    def run(self) -> None:
        """Trains, and lets the uploads finish."""
        uploads: queue.Queue[str] = queue.Queue()
        uploads.put("shard_2.pt")
        try:
            self.train()
        finally:
            announce()
            uploads.join()


# --- Ranks that end ---


class DiesBeforeItPublishes(Trainer):
    """All ranks ask the store for what rank 2 publishes in each step; it dies first. For plain jobs: torchrun would end all."""

    def load_batch(self) -> torch.Tensor:
        """Takes the step's seed from rank 2."""
        key = f"seed/{self.step}"
        if self.is_faulty:
            announce()
            os.kill(os.getpid(), signal.SIGKILL)
        if self.rank == CULPRIT:
            self.store.set(key, str(self.step))
        self.store.get(key)
        return super().load_batch()


class DiesAndIsAwaited(Trainer):
    """Rank 2 dies; those whose connection breaks wait for a replacement, the others in the collective. For plain jobs."""

    def load_batch(self) -> torch.Tensor:
        """Dies of it."""
        if self.is_faulty:
            announce()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().load_batch()

    def average_gradients(self) -> None:
        """Averages, and does not give up when a peer is lost."""
        try:
            super().average_gradients()
        except RuntimeError as error:
            log.warning("lost a peer at step %d: %s", self.step, error)
            self.wait_for_replacement()

    def wait_for_replacement(self) -> None:
        """Until somebody tells us that there is one."""
        while not Path("replacement").exists():
            time.sleep(0.5)


class Ends(Trainer):
    """Rank 2 works for `--for-s` seconds and ends in peace, while the others wait for a key that it was to set."""

    def load_batch(self) -> torch.Tensor:
        """Rank 2 prepares the data of the others."""
        if self.step == FAULTY_STEP and self.rank == CULPRIT:
            announce()
            time.sleep(self.for_s)
            sys.exit(0)
        if self.step == FAULTY_STEP:
            self.store.get("data-prepared")
        return super().load_batch()


class FailsOften(Trainer):
    """Rank 2 fails after `--for-s` seconds of training, each time. With `--max-restarts 100`."""

    def __init__(self, options: argparse.Namespace) -> None:
        super().__init__(options)
        self.ends_at = time.monotonic() + self.for_s

    def load_batch(self) -> torch.Tensor:
        """Meets the record that fails."""
        if self.rank == CULPRIT and self.step > self.ready_step and time.monotonic() > self.ends_at:
            raise RuntimeError(f"out of memory at step {self.step}")
        return super().load_batch()


class Exits(Trainer):
    """Rank 2 leaves without a word to anybody but the system."""

    def load_batch(self) -> torch.Tensor:
        """Gives up."""
        if self.is_faulty:
            announce()
            os._exit(7)
        return super().load_batch()


class IsKilled(Trainer):
    """Rank 2 is killed, as an administrator does it."""

    def load_batch(self) -> torch.Tensor:
        """Kills itself."""
        if self.is_faulty:
            announce()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().load_batch()


class Crashes(Trainer):
    """Rank 2 touches memory that is not there."""

    def load_batch(self) -> torch.Tensor:
        """Decodes a batch with a library of our own."""
        if self.is_faulty:
            announce()
            ctypes.string_at(0)
        return super().load_batch()


class Swells(Trainer):
    """Rank 2 takes memory until there is none. To be run where there is little."""

    def load_batch(self) -> torch.Tensor:
        """Caches the data set."""
        if self.is_faulty:
            announce()
            cache = []
            while True:
                cache.append(torch.ones(4 * 1024**2))
        return super().load_batch()


class Returns(Trainer):
    """Rank 2 has less data and returns with code 0, while the others go on."""

    def run(self) -> None:
        """Trains to the end of its data, and does not wait for anybody."""
        if self.rank == CULPRIT:
            self.step_count = FAULTY_STEP
        self.train()
        announce()
        sys.exit(0)


# --- Secrets ---


class HasSecrets(Trainer):
    """Hangs as `Locks` does, with secrets in locals, in the arguments of collectives and in the log."""

    def train_one_step(self, batch: torch.Tensor) -> None:
        """Keeps its credentials in locals, as people do."""
        password, headers = f"{PLANTED}-local", {"Authorization": f"Bearer {PLANTED}-header"}
        self.fetch(f"https://user:{PLANTED}-url@data.example/part/{self.step}", headers, api_key=f"{PLANTED}-argument")
        super().train_one_step(batch)
        self.share(password)

    def fetch(self, url: str, headers: dict[str, str], api_key: str) -> None:
        """Rank 2 waits for ever, for a lock."""
        if self.step == 0:
            log.error("401 for %s with %s, key %s", url, headers, api_key)
            log.error("connecting to s3://%s-bucket?token=%s-query", PLANTED, PLANTED)
        if self.is_faulty:
            lock = threading.Lock()
            lock.acquire()
            announce()
            lock.acquire()

    def share(self, password: str) -> None:
        """Gives all ranks what each has fetched: a secret in the locals of torch's own frames."""
        tokens: list[dict[str, str] | None] = [None] * dist.get_world_size()
        dist.all_gather_object(tokens, {"token": f"{password}-object"})


class GathersSecrets(HasSecrets):
    """As before; the others wait inside the collective whose arguments are secret."""

    def fetch(self, url: str, headers: dict[str, str], api_key: str) -> None:
        """Nothing to fetch."""

    def share(self, password: str) -> None:
        """Rank 2 does not come."""
        super().fetch("", {}, api_key=password)
        super().share(password)


FAULTS: dict[str, type[Trainer]] = {
    "none": Trainer,
    "checkpoint": Checkpoint,
    "checkpoint-by-path": CheckpointByPath,
    "read-pipe": ReadsPipe,
    "read-file": ReadsFile,
    "open-file": OpensFile,
    "receive": Receives,
    "slow-read": ReadsSlowly,
    "loader": Loader,
    "loader-sleeps": LoaderSleeps,
    "lock": Locks,
    "queue": WaitsForQueue,
    "file-lock": LocksFile,
    "gil": HoldsGil,
    "busy-loop": Spins,
    "regex": Matches,
    "native": Hashes,
    "sleep": Sleeps,
    "command": WaitsForCommand,
    "stopped": StopsItself,
    "store-get": AsksStore,
    "store-wait": WaitsForStore,
    "left-loop-return": LeavesAndLingers,
    "left-loop-break": LeavesByBreak,
    "left-loop-finish": LeavesAndServes,
    "exception-sleep": LogsAndSleeps,
    "exception-return": LogsAndReturns,
    "exception-finally": CleansUp,
    "killed-store": DiesBeforeItPublishes,
    "killed-awaited": DiesAndIsAwaited,
    "ends": Ends,
    "fails-often": FailsOften,
    "raises": BadRecord,
    "exits": Exits,
    "killed": IsKilled,
    "crashes": Crashes,
    "swells": Swells,
    "returns": Returns,
    "secrets": HasSecrets,
    "secrets-in-collective": GathersSecrets,
}


def main() -> None:
    """Joins the job and trains."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--fault", choices=FAULTS, default="none")
    parser.add_argument("--step-s", type=float, default=0.05, help="how long one step computes")
    parser.add_argument("--uneven", action="store_true", help="rank 2 alone computes, the others wait for it in all_reduce")
    parser.add_argument("--ready-step", type=int, default=FAULTY_STEP, help="a healthy job touches READY_FILE after this step")
    parser.add_argument("--for-s", type=float, default=3.0, help="when the faults that end a rank do so")
    parser.add_argument("--steps", type=int, default=STEP_COUNT, help="how many steps a healthy job trains for")
    parser.add_argument("--api-key", help="a secret on the command line")
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format=f"%(asctime)s [rank{os.environ['RANK']}] %(levelname)s %(message)s")
    dist.init_process_group("gloo", timeout=TIMEOUT)
    trainer = FAULTS[options.fault](options)
    trainer.run()
    if trainer.keeps_container:
        time.sleep(FOR_EVER_S)  # so that somebody can look at the results
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
