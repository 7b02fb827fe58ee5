"""`pardbg sim`: writes the evidence of a simulated job, and the truth about it."""

import json
from pathlib import Path
from typing import Any

import click
import msgspec

from pardbg.watchdog.errors import InputError
from pardbg.watchdog.sim.recipe import BACKENDS, Recipe
from pardbg.watchdog.sim.scenario import SCENARIOS, near_misses, simulate
from pardbg.watchdog.sim.truth import Truth
from pardbg.watchdog.sim.write import write_job

_EXAMPLES = """\b
Examples:
  pardbg sim --list
  pardbg sim --ranks 16 --fault missing-participant --out /tmp/job
  pardbg sim --ranks 64 --fault desync-skipped --layout tp=4,pp=2,dp=8 --entries 2000 --out /tmp/job
  pardbg sim --ranks 4 --fault desync-extra --backend gloo --format json --missing 2 --out /tmp/job
  pardbg sim --ranks 4096 --fault desync-extra --digests --entries 100 --out /tmp/job
  pardbg analyze /tmp/job
"""


def _list(context: click.Context, _: click.Parameter, is_wanted: bool) -> None:  # noqa: FBT001 - click's callback form
    if is_wanted and not context.resilient_parsing:
        click.echo("\n".join(_list_lines()))
        context.exit()


@click.command("sim", epilog=_EXAMPLES)
@click.option(
    "--list", callback=_list, is_flag=True, is_eager=True, expose_value=False, help="Print every fault and its near misses."
)
@click.option("--fault", required=True, metavar="NAME", help="What goes wrong; see --list.")
@click.option("--out", "out_dir", required=True, type=click.Path(path_type=Path, file_okay=False), help="Folder to write into.")
@click.option("--ranks", type=click.IntRange(min=2), default=16, show_default=True, help="World size.")
@click.option("--layout", metavar="tp=2,pp=2,dp=4,ep=2", help="Parallel axes; by default what suits --ranks.")
@click.option("--backend", type=click.Choice(BACKENDS), default="nccl", show_default=True)
@click.option("--seed", type=int, default=0, show_default=True, help="The same seed gives the same bytes.")
@click.option("--entries", type=click.IntRange(min=1), default=200, show_default=True, help="Size of a rank's ring.")
@click.option("--missing", type=int, multiple=True, metavar="RANK", help="A rank whose dump is not written; repeatable.")
@click.option("--skew", "has_skew", is_flag=True, help="Rings wrapped at different places, hosts' clocks apart.")
@click.option("--format", "form", type=click.Choice(["pickle", "json"]), default="pickle", show_default=True)
@click.option("--active-only", "is_active_only", is_flag=True, help="Leave out what is known to be completed.")
@click.option("--no-frames", "has_frames", is_flag=True, default=True, flag_value=False, help="Record no call sites.")
@click.option(
    "--dump-version", type=click.Choice(["2.9", "2.10"]), help="Format of the dumps; by default as the back end writes."
)
@click.option(
    "--digests", "are_digests", is_flag=True, help="What a scan of many nodes keeps, a file a node, instead of whole rings."
)
@click.option("--force", "is_forced", is_flag=True, help="Write even if the folder is not empty.")
@click.option("--json", "as_json", is_flag=True, help="Print the truth as JSON.")
def sim(out_dir: Path, *, is_forced: bool, as_json: bool, form: str, are_digests: bool, **recipe: Any) -> None:
    """Write the evidence of a simulated job, with truth.json.

    Every rank's program is played until nothing moves; dumps, stacks and logs follow from where it stops.
    """
    if out_dir.is_dir() and any(out_dir.iterdir()) and not is_forced:
        raise click.UsageError(f"{out_dir} is not empty: give another --out, or --force")
    try:
        write = _write_digests if are_digests else _write_files
        truth, paths = write(Recipe(**recipe, is_json=form == "json"), out_dir)
    except InputError as error:
        raise click.UsageError(f"{error}: {error.remedy}" if error.remedy != InputError.remedy else str(error)) from error
    except OSError as error:
        raise click.ClickException(f"cannot write into {out_dir}: {error.strerror or error}") from error
    click.echo(_as_json(truth, paths) if as_json else _as_text(truth, paths, out_dir))


def _write_files(recipe: Recipe, out_dir: Path) -> tuple[Truth, list[Path]]:
    job = simulate(recipe)
    return job.truth, write_job(job, out_dir)


def _write_digests(recipe: Recipe, out_dir: Path) -> tuple[Truth, list[Path]]:
    from pardbg.watchdog.commands.digest_files import write_digests  # noqa: PLC0415 - `--help` does not wait for it

    return write_digests(recipe, out_dir)


def _list_lines() -> list[str]:
    lines = []
    for fault in SCENARIOS.values():
        only = f" ({fault.backends[0]} only)" if len(fault.backends) == 1 else ""
        lines.append(f"{fault.name:<34}{fault.summary}{only}")
        misses = ", ".join(miss.name for miss in near_misses(fault.name))
        if misses:
            lines.append(f"{'':<34}  near misses: {misses}")
    return lines


def _as_json(truth: Truth, paths: list[Path]) -> str:
    return json.dumps({"files": [str(path) for path in paths], "truth": msgspec.to_builtins(truth)})


def _as_text(truth: Truth, paths: list[Path], out_dir: Path) -> str:
    verdict = truth.kind.value if truth.kind else truth.status.value
    blamed = f", culprits {', '.join(map(str, truth.culprits))}" if truth.culprits else ""
    return f"{len(paths)} files in {out_dir}\ntruth: {verdict}{blamed}\nnext: pardbg analyze {out_dir}"
