"""`python -m pardbg` is the same as the console script `pardbg`."""

from pardbg.watchdog.commands.main import main

if __name__ == "__main__":
    main()
