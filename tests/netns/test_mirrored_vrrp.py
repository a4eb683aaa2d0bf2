"""VRRP of daemons in Linux on twins: FRR's vrrpd and keepalived with `use_vmac`, both families."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from peers.mirrored import Mirrored, give_addresses, mirrored_network
from peers.network import ping_all, reach
from peers.processes import wait_until
from peers.routing_daemons import Frr, Keepalived

VR_ID = 7
MAC = {4: "00:00:5e:00:01:07", 6: "00:00:5e:00:02:07"}
VIRTUAL = {4: "10.0.1.200", 6: "2001:db8:1::c8"}
LINK_LOCAL = "fe80::c8"
FAR = {4: "10.0.2.2", 6: "2001:db8:2::2"}
families = pytest.mark.parametrize("family", [4, 6], ids=["IPv4", "IPv6"])


@pytest.fixture
def net() -> Iterator[Mirrored]:
    """A router with twins, with addresses."""
    with mirrored_network() as made:
        give_addresses(made)
        yield made


def addresses(family: int) -> list[str]:
    """All addresses of the virtual router."""
    return [VIRTUAL[4]] if family == 4 else [LINK_LOCAL, VIRTUAL[6]]


def learned(net: Mirrored, family: int) -> str:
    """The MAC address that the host on the left knows of the virtual router."""
    found = net.left.ip_json("neigh", "show", VIRTUAL[family], "dev", "h0")
    return str(found[0].get("lladdr", "")) if found else ""


def keepalived_config(device: str, family: int, priority: int, more: str = "") -> str:
    """An instance of keepalived."""
    length = 24 if family == 4 else 64
    listed = "\n".join(f"{address}/{length}" for address in addresses(family))
    return f"""
        vrrp_instance virtual{family} {{
            state BACKUP
            interface {device}
            {more}
            virtual_router_id {VR_ID}
            priority {priority}
            advert_int 0.2
            {"native_ipv6" if family == 6 else ""}
            virtual_ipaddress {{
                {listed}
            }}
        }}"""


def forwards(net: Mirrored, family: int) -> None:
    """The host on the left reaches the virtual router, and through it the host on the right."""
    net.left.ip("neigh", "flush", "dev", "h0")
    reach(net.left, VIRTUAL[family])
    wait_until("its MAC address is known", lambda: learned(net, family) == MAC[family])
    net.left.ip("route", "replace", "default", "via", VIRTUAL[family])
    ping_all(net.left, FAR[family])
    before = net.router.counters("tap1")["tx_packets"]
    ping_all(net.left, FAR[family], count=20)
    assert net.router.counters("tap1")["tx_packets"] >= before + 20, "the router forwards it"


def is_own(net: Mirrored, family: int) -> bool:
    """Does the router take packets to the virtual router?"""
    length = 32 if family == 4 else 128
    command = "ip" if family == 4 else "ip6"
    return "local" in net.router.answer(f"show {command} fib {VIRTUAL[family]}/{length}").out


def wait_master_of_host(net: Mirrored, family: int) -> None:
    """Wait until the host on the left is the active router, and the router is none."""
    wait_until("the host is active", lambda: VIRTUAL[family] in net.left.ip("addr", "show", "dev", "h0"))
    wait_until("the router gave way", lambda: not is_own(net, family))


@families
def test_frr_on_a_twin_is_active_and_gives_way_and_takes_over(net: Mirrored, family: int) -> None:
    device = f"vrrp{family}"
    net.twins.ip("link", "add", device, "link", "e0", "type", "macvlan", "mode", "bridge")
    net.twins.ip("link", "set", device, "address", MAC[family])
    if family == 6:
        net.twins.sysctl(f"net.ipv6.conf.{device}.addr_gen_mode", 1)
    length = 24 if family == 4 else 64
    for address in addresses(family):
        more = ["nodad"] if family == 6 else []
        net.twins.ip("addr", "add", f"{address}/{length}", "dev", device, *more)
    net.twins.ip("link", "set", device, "up")
    word = "ip" if family == 4 else "ipv6"
    listed = "\n".join(f"vrrp {VR_ID} {word} {address}" for address in addresses(family))
    frr = Frr(
        net.twins,
        "vrrpd",
        config=f"""interface e0
        vrrp {VR_ID} version 3
        vrrp {VR_ID} priority 150
        vrrp {VR_ID} advertisement-interval 200
        {listed}""",
    )
    key = f"v{family}"

    def status() -> str:
        return str(frr.json("show vrrp")[0][key]["status"])

    wait_until("FRR is active", lambda: status() == "Master")
    wait_until("the router knows", lambda: is_own(net, family))
    forwards(net, family)
    better = Keepalived(net.left, keepalived_config("h0", family, 200))
    wait_until("FRR is the backup", lambda: status() == "Backup")
    wait_master_of_host(net, family)
    better.process.stop()
    wait_until("FRR has taken over", lambda: status() == "Master")
    wait_until("the router knows", lambda: is_own(net, family))
    forwards(net, family)


@families
def test_keepalived_on_a_twin_is_active_and_gives_way_and_takes_over(net: Mirrored, family: int) -> None:
    config = keepalived_config("e0", family, 150, f"use_vmac vrrp{family}")
    Keepalived(net.twins, config)
    wait_until("the router knows", lambda: is_own(net, family))
    forwards(net, family)
    better = Keepalived(net.left, keepalived_config("h0", family, 200))
    wait_master_of_host(net, family)
    better.process.stop()
    wait_until("keepalived has taken over", lambda: is_own(net, family))
    forwards(net, family)
