"""A kubectl that behaves, as far as `exec` goes: pods are entries of ``TEST_PODS`` (JSON: name -> what is wrong with it)."""

import json
import os
import sys


def fail(words: str) -> None:
    """As kubectl does it."""
    sys.exit(words)


def main() -> None:
    """``kubectl exec --stdin [--namespace N] POD [--container C] -- COMMAND...``; the command runs here, in place of it."""
    at = sys.argv.index("--")
    own, command = sys.argv[1:at], sys.argv[at + 1 :]
    if own[:2] != ["exec", "--stdin"]:
        fail(f"error: unknown command {own}")
    words = own[2:]
    options = {}
    for name in ("--namespace", "--container"):
        if name in words:
            place = words.index(name)
            options[name] = words[place + 1]
            del words[place : place + 2]
    pods = json.loads(os.environ["TEST_PODS"])
    (pod,) = words
    if options.get("--namespace", "default") != "train" or pod not in pods:
        fail(f'Error from server (NotFound): pods "{pod}" not found')
    if options.get("--container") not in {None, "main"}:
        fail(f"Error from server (BadRequest): container {options['--container']} is not valid for pod {pod}")
    if pods[pod]:
        fail(pods[pod])
    os.execvp(command[0], command)  # noqa: S606 - as a container runtime does


if __name__ == "__main__":
    main()
