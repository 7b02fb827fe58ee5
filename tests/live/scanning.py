"""Scans a real job with the real command, and what the tests ask of its report."""

import json
import subprocess
import sys
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from pardbg.watchdog.outputs.validation import validate_report


@dataclass(frozen=True)
class Case:
    """A fault of a program in ``jobs`` and what the scan of it must say."""

    program: str
    fault: str
    kind: str
    cause: str | None
    culprits: set[int]
    ranks: int = 4
    launcher: Literal["torchrun", "plain"] = "torchrun"
    env: dict[str, str] | None = None

    @property
    def name(self) -> str:
        """For the test's id."""
        return f"{self.program}-{self.fault}{'-recorder-off' if self.env else ''}"


@dataclass(frozen=True)
class Scan:
    """A command's exit code and report."""

    exit_code: int
    report: dict[str, Any]
    errors: str
    text: str

    @classmethod
    def of(cls, *arguments: str) -> "Scan":
        """Runs ``pardbg`` with ``--json``; what it prints must be a valid report."""
        return cls.of_command([sys.executable, "-m", "pardbg", *arguments, "--json"])

    @classmethod
    def of_command(cls, command: list[str]) -> "Scan":
        """Runs a command line that ends in a report."""
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
        assert done.stdout, done.stderr
        report = json.loads(done.stdout)
        validate_report(report)
        return cls(done.returncode, report, done.stderr, done.stdout)

    @classmethod
    def of_files(cls, folder: Path) -> "Scan":
        """Analyses what a scan has kept."""
        return cls.of("analyze", str(folder))

    @property
    def verdict(self) -> dict[str, Any]:
        """The verdict; empty if there is none."""
        return self.report["verdict"] or {}

    @property
    def kind(self) -> str | None:
        """Of the verdict."""
        return self.verdict.get("kind")

    @property
    def cause(self) -> str | None:
        """Of the verdict."""
        return self.verdict.get("cause")

    @cached_property
    def blamed(self) -> set[int]:
        """All ranks that any finding blames."""
        return {subject["rank"] for finding in self.report["findings"] for subject in finding["culprits"]}

    @property
    def interval_s(self) -> float:
        """Seconds between the two samples."""
        first, last = (datetime.fromisoformat(moment.replace("Z", "+00:00")) for moment in self.report["sampled_at"])
        return (last - first).total_seconds()

    @property
    def summary(self) -> str:
        """For the message of a test that fails."""
        claims = [finding["claim"] for finding in self.report["findings"]]
        return f"{self.report['status']}: {claims} {self.report['notes']} {self.report['unknowns']}"


def run_scan(selector: tuple[str, ...], *options: str) -> Scan:
    """Scans."""
    return Scan.of("scan", *selector, *options)
