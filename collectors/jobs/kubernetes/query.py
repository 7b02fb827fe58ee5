"""The Kubernetes job that a user means: ``namespace/name``."""

import re

from pardbg.watchdog.model.base import Noun

_NAMESPACE = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_NAME = r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?"
_FORM = re.compile(rf"(?P<namespace>{_NAMESPACE})/(?P<name>{_NAME})", re.ASCII)
MOST_LABEL_LENGTH = 63  # of a label's value; longer names are on no label


class KubernetesQuery(Noun, frozen=True, kw_only=True):
    """The parts of an id. Both are names that Kubernetes allows, so that they can be no option and no other selector."""

    namespace: str
    name: str

    @property
    def spelled(self) -> str:
        """As people type it."""
        return f"{self.namespace}/{self.name}"


def read_query(text: str) -> KubernetesQuery | None:
    """None if that is no name of Kubernetes'."""
    match = _FORM.fullmatch(text)
    return KubernetesQuery(namespace=match["namespace"], name=match["name"]) if match else None
