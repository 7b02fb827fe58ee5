"""A kubectl that behaves, for whole scans: pods are process namespaces of this machine, told of in the file ``TEST_CLUSTER``.

The file is JSON: ``pods`` is the list that ``get pods`` answers with, ``processes`` the number of a process in each pod.
``exec`` enters the pod's namespaces, as a container runtime does.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

GROUPS = {"kind": "APIGroupList", "groups": [{"name": "batch"}, {"name": "jobset.x-k8s.io"}]}


def main() -> None:
    """``get --raw /apis``, ``get pods --selector=LABEL=VALUE``, ``exec --stdin --namespace N POD --container C -- COMMAND``."""
    cluster: dict[str, Any] = json.loads(Path(os.environ["TEST_CLUSTER"]).read_text())
    words = sys.argv[1:]
    if words[:3] == ["get", "--raw", "/apis"]:
        print(json.dumps(GROUPS))  # noqa: T201 - its answer
    elif words[:2] == ["get", "pods"]:
        label, _, value = (
            next(word for word in words if word.startswith("--selector=")).removeprefix("--selector=").partition("=")
        )
        items = [pod for pod in cluster["pods"] if pod["metadata"]["labels"].get(label) == value]
        print(json.dumps({"kind": "List", "apiVersion": "v1", "items": items}))  # noqa: T201 - its answer
    elif words[:2] == ["exec", "--stdin"]:
        enter(words[2:], cluster["processes"])
    else:
        sys.exit(f"error: unknown command {words[0]}")


def enter(words: list[str], processes: dict[str, int]) -> None:
    """Runs the command in the pod, in place of this process' child."""
    at = words.index("--")
    own, command = words[:at], words[at + 1 :]
    if own[:2] != ["--namespace", "train"] or own[3:] != ["--container", "pytorch"] or own[2] not in processes:
        sys.exit(f"Error from server (NotFound): pods {own} not found")
    os.execvp("nsenter", ["nsenter", "--target", str(processes[own[2]]), "--pid", "--mount", "--uts", "--", *command])  # noqa: S606, S607


if __name__ == "__main__":
    main()
