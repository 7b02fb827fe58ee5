"""The console script `pardbg`, and `python -m pardbg`. Imports late, so that Ctrl-C during start-up is a quiet 130 as well."""

import sys

EXIT_INTERRUPTED = 130


def main() -> None:
    """Runs the command line."""
    try:
        from pardbg.watchdog.commands.main import main as run  # noqa: PLC0415 - see above
    except KeyboardInterrupt:
        sys.exit(EXIT_INTERRUPTED)
    run()


if __name__ == "__main__":
    main()
