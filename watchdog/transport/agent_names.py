"""All agents behind one name, as a headless service of Kubernetes has it: each address is an agent. Deadline: DNS's own."""

import socket

from pardbg.watchdog.errors import InputError
from pardbg.watchdog.transport.agent_addresses import AgentAddress, name_nodes, read_addresses


def resolve_all(name: str) -> tuple[AgentAddress, ...]:
    """The agents at every address of ``NAME`` or ``NAME:PORT``.

    Raises:
        InputError: if the name is none, or has no address.
        ParseError: if it is none.
    """
    found = read_addresses(name)
    if len(found) != 1:
        raise InputError(f"dns:{name[:80]} is not one name", remedy="write dns:NAME or dns:NAME:PORT")
    try:
        answers = socket.getaddrinfo(found[0].host, found[0].port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise InputError(f"the name {found[0].host} has no address: {error.strerror or error}", remedy="look at it") from error
    return name_nodes((str(answer[4][0]), found[0].port) for answer in answers)
