"""Ports of a host's network that went down or came up, as drivers word it. Pure.

Bridges, tunnels and the ends of containers' networks come and go all day: their lines are no events.
"""

import re

from pardbg.watchdog.model.kernel import LinkEvent, LinkKind, Moment

_INFINIBAND = re.compile(
    r"(?:infiniband )?(?P<device>(?:mlx[45]|bnxt_re|irdma|hns|efa|qib|hfi1)_?\d{1,3})(?::? port |:)(?P<port>\d{1,3})\b"
    r".{0,80}?\b(?:link |state |Link )?(?P<state>down|DOWN|Down|up|UP|ACTIVE|active)\b"
)
_PORT_STATE = re.compile(
    r"(?P<driver>mlx5_core|mlx4_core) (?P<device>[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.\d).{0,120}?"
    r"\b(?:Link|link|Port: \d{1,3} Link|port module).{0,20}?\b(?P<state>down|DOWN|Down|up|UP|ACTIVE|unplugged)\b"
)
_NETDEV = re.compile(
    r"(?:[\w-]{1,32} [0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.\d )?(?P<device>[a-zA-Z][\w.]{0,14})(?: \(\w{1,32}\))?: "
    r"(?:NIC )?Link is (?P<state>down|Down|up|Up)\b"
)
_IPOIB = re.compile(r"IPv6: ADDRCONF\(NETDEV_CHANGE\): (?P<device>ib\w{1,14}): link becomes (?P<state>ready)")
_VIRTUAL = re.compile(r"(?:lo|veth|docker|br|virbr|cali|flannel|cni|tun|tap|vnet|wl|cilium|lxc|dummy|bond_slave)")
_UP = frozenset({"up", "active", "ready"})


def parse_link(message: str, when: Moment) -> LinkEvent | None:
    """The change of a port that a message tells of; None if it tells of none."""
    for pattern in (_PORT_STATE, _IPOIB, _INFINIBAND, _NETDEV):
        match = pattern.match(message)
        if match is None:
            continue
        device = match["device"]
        if pattern is _NETDEV and _VIRTUAL.match(device):
            return None
        is_infiniband = pattern is _INFINIBAND or device.startswith("ib")
        return LinkEvent(
            kind=LinkKind.INFINIBAND if is_infiniband else LinkKind.ETHERNET,
            device=device,
            is_up=match["state"].lower() in _UP,
            when=when,
            port=int(match["port"]) if pattern is _INFINIBAND else None,
        )
    return None
