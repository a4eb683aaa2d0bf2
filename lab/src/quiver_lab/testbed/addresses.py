"""Addresses, VLANs and interface names that the forwarder and the generator agree on."""

from __future__ import annotations

from quiver_lab.experiments.scenario import (
    Scenario,
)

PORTS = 2
INTERFACES = ("memif1/0", "memif1/1")
VLANS = (100, 200)
"""Of frames with tags: on the first port and on the second."""
SERVICE_VLANS = (10, 20)
"""Around them, where there are two."""
LABELS = (16, 17)
"""Of frames that come in by the first port and by the second; each leaves with the other."""
IP4_FIRST_ROUTE = ("10.0.0.0", "20.0.0.0")
"""Consecutive host routes towards port 0 and port 1."""
IP6_FIRST_ROUTE = ("2001:2:0:a000::", "2001:2:0:b000::")
FIRST_ROUTES = {"ip4": IP4_FIRST_ROUTE, "ip6": IP6_FIRST_ROUTE}


def interface_mac(port: int) -> str:
    """The forwarder's address at a port."""
    return f"02:fe:00:00:00:{port + 1:02x}"


def interface_address(path: str, port: int) -> str:
    """The forwarder's address at a port, of a family."""
    return f"198.18.{port}.1" if path == "ip4" else f"2001:2:0:{port:x}::1"


def host_mac(port: int, host: int) -> str:
    """A neighbour behind a port."""
    return f"02:00:00:00:{port:02x}:{host + 1:02x}"


def host_address(path: str, port: int, host: int) -> str:
    """A neighbour's address in the benchmarking space of RFC 2544 and RFC 5180."""
    return f"198.18.{port}.{host + 2}" if path == "ip4" else f"2001:2:0:{port:x}::{host + 2:x}"


def station_mac(port: int) -> str:
    """The first station behind a port of a bridge."""
    return f"02:01:{port:02x}:00:00:00"


def interfaces(scenario: Scenario) -> tuple[str, str]:
    """What is forwarded between: the two memifs, or their sub-interfaces."""
    if scenario.tags == "none":
        return INTERFACES
    first, second = (f"{name}.{vlan}" for name, vlan in zip(INTERFACES, VLANS, strict=True))
    return first, second
