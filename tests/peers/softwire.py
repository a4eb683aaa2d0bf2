"""A customer's edge of MAP-E and lightweight 4over6 on Linux: a tun device, its packets in packets of IPv6.

Linux does what a customer's edge does (addresses, ports by nftables, fragments, reassembly); the program
`softwire_edge.py`, run in the customer's namespace, puts the header of IPv6 on and takes it off.
"""

from __future__ import annotations

import sys
from pathlib import Path

from peers.namespace import Namespace
from peers.processes import Process, wait_until

PROGRAM = Path(__file__).with_name("softwire_edge.py")


def softwire(space: Namespace, device: str, local: str, border: str, ip4: str, ports: str) -> Process:
    """Join a namespace to a border relay: its packets of IPv4 leave by `device` with these ports."""
    program = tunnel(space, device, local, border, ip4)
    share_ports(space, device, ip4, ports)
    return program


def tunnel(space: Namespace, device: str, local: str, border: str, ip4: str) -> Process:
    """Let a namespace's packets of IPv4 leave by `device` in packets of IPv6, as those of a B4 do."""
    program = space.start(sys.executable, str(PROGRAM), device, local, border)
    wait_until(f"{device} is there", lambda: device in space.ip("link", "show"))
    space.ip("link", "set", device, "mtu", "1460", "up")
    space.ip("addr", "add", f"{ip4}/32", "dev", device)
    space.ip("-4", "route", "replace", "default", "dev", device)
    return program


def share_ports(space: Namespace, device: str, ip4: str, ports: str) -> None:
    """Let what leaves by a device have this address and ports of this range, identifiers of pings too."""
    rules = "".join(
        f"ip protocol {protocol} oifname {device} counter snat to {ip4}:{ports}\n"
        for protocol in ("icmp", "tcp", "udp")
    )
    chain = "type nat hook postrouting priority 100;"
    space.run("nft", "-f", "-", stdin=f"table ip softwire {{\nchain out {{\n{chain}\n{rules}}}\n}}\n")
