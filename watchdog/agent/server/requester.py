"""Somebody who asks, once it is known who that is."""

from enum import Enum

from pardbg.watchdog.model.base import Noun


class Right(str, Enum):
    """What may be done with a job: reading what the agent holds of it, or looking at its processes."""

    READ = "read"
    LOOK = "look"


class KubernetesUser(Noun, frozen=True, kw_only=True):
    """As the API server names him."""

    username: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, tuple[str, ...]] = {}


class Requester(Noun, frozen=True, kw_only=True):
    """Who asks.

    Attributes:
        name: for the log: ``uid 1000 (socket)``.
        uid: on this machine; None if he has none here.
        is_admin: whether every job is his to see.
        may_look: whether he may look at processes, too, where a job is his.
        kubernetes: whom to ask Kubernetes about.
        words: what his munge credential was made for; empty for other ways.
    """

    name: str
    uid: int | None = None
    is_admin: bool = False
    may_look: bool = True
    kubernetes: KubernetesUser | None = None
    words: str = ""
