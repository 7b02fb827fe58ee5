"""The expected texts: what each sample looks like. ``python -m tests.outputs.golden_files`` writes them anew, for review."""

from pathlib import Path

from tests.outputs.samples import SAMPLES

from pardbg.watchdog.outputs.markdown import render_markdown
from pardbg.watchdog.outputs.terminal import render_terminal

FOLDER = Path(__file__).parent / "golden"
WIDTH = 80


def rendered() -> dict[str, str]:
    """Render every sample to each text form, under the name of its file."""
    terminal = {f"{name}.txt": render_terminal(report, width=WIDTH) for name, report in SAMPLES.items()}
    markdown = {f"{name}.md": render_markdown(report) for name, report in SAMPLES.items()}
    return terminal | markdown


if __name__ == "__main__":
    for file_name, text in rendered().items():
        (FOLDER / file_name).write_text(text, encoding="utf-8")
