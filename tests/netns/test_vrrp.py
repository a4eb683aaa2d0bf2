"""VRRP with keepalived and FRR: who is active, who takes over, which MAC address hosts learn."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from peers.network import DEVICE, Network, Side, network, ping_all, reach
from peers.processes import wait_until
from peers.routing_daemons import Bird, Frr, Keepalived

VR_ID = 7
VIRTUAL_MAC = {4: "00:00:5e:00:01:07", 6: "00:00:5e:00:02:07"}

families = pytest.mark.parametrize("family", [4, 6], ids=["IPv4", "IPv6"])


@pytest.fixture
def net() -> Iterator[Network]:
    """A router and a host beside it."""
    with network(hosts=1) as made:
        yield made


def virtual(side: Side, family: int) -> str:
    """The address of the virtual router that hosts use."""
    return f"10.{side.subnet}.0.254" if family == 4 else f"2001:db8:{side.subnet}::fe"


def addresses(side: Side, family: int) -> str:
    """All addresses of the virtual router."""
    return virtual(side, family) if family == 4 else f"fe80::fe {virtual(side, family)}"


def words(side: Side, family: int) -> str:
    """The virtual router in the words of commands."""
    return f"{side.interface} vr_id {VR_ID}" + (" ipv6" if family == 6 else "")


def add(net: Network, family: int, priority: int, more: str = "") -> None:
    """Add the virtual router and start it."""
    side = net.left
    six = " ipv6" if family == 6 else ""
    net.router.ctl(
        f"vrrp vr add {side.interface} vr_id {VR_ID} priority {priority} interval 50 {more}{six} "
        f"{addresses(side, family)}"
    )
    net.router.ctl(f"vrrp proto start {words(side, family)}")


def row(net: Network) -> dict[str, Any]:
    """What the router says of its virtual router."""
    return dict(net.router.json("show vrrp vr")[0])


def wait_state(net: Network, state: str) -> None:
    """Wait until the virtual router is in a state."""
    wait_until(f"the virtual router is {state}", lambda: row(net)["state"] == state)


def learned(side: Side, address: str) -> str:
    """The MAC address that the host knows of an address."""
    found = side.host.ip_json("neigh", "show", address, "dev", DEVICE)
    return str(found[0].get("lladdr", "")) if found else ""


def has_address(side: Side, address: str) -> bool:
    """Has the host the address?"""
    links = side.host.ip_json("addr", "show")
    return any(info.get("local") == address for link in links for info in link.get("addr_info", []))


def keepalived(net: Network, family: int, priority: int) -> Keepalived:
    """Start keepalived on the host."""
    side = net.left
    listed = "\n".join(addresses(side, family).split())
    return Keepalived(
        side.host,
        f"""
        vrrp_instance virtual {{
            state BACKUP
            interface {DEVICE}
            virtual_router_id {VR_ID}
            priority {priority}
            advert_int 0.5
            {"native_ipv6" if family == 6 else ""}
            virtual_ipaddress {{
                {listed}
            }}
        }}""",
    )


@families
def test_keepalived_is_the_backup_and_takes_over(net: Network, family: int) -> None:
    side = net.left
    address = virtual(side, family)
    add(net, family, 200, "accept_mode")
    wait_state(net, "Master")
    keepalived(net, family, 100)
    reach(side.host, address)
    ping_all(side.host, address)
    assert learned(side, address) == VIRTUAL_MAC[family]
    assert not has_address(side, address), "keepalived is a backup"
    net.router.ctl(f"vrrp proto stop {words(side, family)}")
    wait_until("keepalived has taken over", lambda: has_address(side, address))
    net.router.ctl(f"vrrp proto start {words(side, family)}")
    wait_state(net, "Master")
    wait_until("keepalived gave way", lambda: not has_address(side, address))
    reach(side.host, address)


@families
def test_the_router_is_the_backup_of_keepalived_and_takes_over(net: Network, family: int) -> None:
    side = net.left
    address = virtual(side, family)
    peer = keepalived(net, family, 200)
    wait_until("keepalived is active", lambda: has_address(side, address))
    add(net, family, 100, "accept_mode")
    wait_until("advertisements are heard", lambda: row(net)["received"] >= 4)
    assert (row(net)["state"], row(net)["heard_priority"]) == ("Backup", 200)
    assert row(net)["other_addresses"] == 0
    peer.process.stop()
    wait_state(net, "Master")
    side.host.ip("neigh", "flush", "dev", DEVICE)
    reach(side.host, address)
    assert learned(side, address) == VIRTUAL_MAC[family]


def test_without_accept_mode_hosts_learn_the_address_and_get_no_answer(net: Network) -> None:
    side = net.left
    add(net, 4, 200)
    wait_state(net, "Master")
    before = net.router.errors()
    side.host.run("ping", "-n", "-c", "2", "-i", "0.2", "-W", "1", virtual(side, 4), check=False)
    net.router.wait_for_error(before, "vrrp-virtual-address", "not-accepted")
    assert learned(side, virtual(side, 4)) == VIRTUAL_MAC[4]


@families
def test_frr_gives_way_and_takes_over(net: Network, family: int) -> None:
    side = net.left
    device = f"vrrp{family}"
    side.host.ip("link", "add", device, "link", DEVICE, "type", "macvlan", "mode", "bridge")
    side.host.ip("link", "set", device, "address", VIRTUAL_MAC[family])
    if family == 6:
        # The link-local address of the virtual router belongs to its device.
        side.host.sysctl(f"net.ipv6.conf.{device}.addr_gen_mode", 1)
    length = 24 if family == 4 else 64
    for address in addresses(side, family).split():
        side.host.ip("addr", "add", f"{address}/{length}", "dev", device, *(["nodad"] if family == 6 else []))
    side.host.ip("link", "set", device, "up")
    word = "ip" if family == 4 else "ipv6"
    listed = "\n".join(f"vrrp {VR_ID} {word} {address}" for address in addresses(side, family).split())
    frr = Frr(
        side.host,
        "vrrpd",
        config=f"""interface {DEVICE}
        vrrp {VR_ID} version 3
        vrrp {VR_ID} priority 100
        vrrp {VR_ID} advertisement-interval 500
        {listed}""",
    )
    key = "v4" if family == 4 else "v6"

    def status() -> str:
        return str(frr.json("show vrrp")[0][key]["status"])

    wait_until("FRR is active", lambda: status() == "Master")
    add(net, family, 200)
    wait_state(net, "Master")
    wait_until("FRR is the backup", lambda: status() == "Backup")
    net.router.ctl(f"vrrp proto stop {words(side, family)}")
    wait_until("FRR has taken over", lambda: status() == "Master")


def test_a_virtual_router_follows_a_bfd_session_with_bird(net: Network) -> None:
    left = net.left
    ends = f"interface {left.interface} local-addr {left.router_ip4} peer-addr {left.ip4}"
    Bird(
        left.host,
        f"""router id {left.ip4};
        protocol device {{}}
        protocol bfd {{
            interface "{DEVICE}" {{ min rx interval 100 ms; min tx interval 100 ms; multiplier 3; }};
            neighbor {left.router_ip4} dev "{DEVICE}";
        }}""",
    )
    add(net, 4, 200)
    net.router.ctl(f"bfd udp session add {ends} desired-min-tx 100000 required-min-rx 100000 detect-mult 3")
    net.router.ctl(
        f"vrrp vr track-bfd add {words(left, 4)} track-interface {left.interface} "
        f"peer-addr {left.ip4} priority 150"
    )
    wait_until("the session is up", lambda: row(net)["priority"] == 200)
    left.host.run(
        "nft",
        "table inet cut { chain input { type filter hook input priority 0; udp dport 3784 drop; };"
        " chain output { type filter hook output priority 0; udp dport 3784 drop; }; }",
    )
    wait_until("the session is down", lambda: row(net)["priority"] == 50)
    left.host.run("nft", "delete table inet cut")
    wait_until("the session is up again", lambda: row(net)["priority"] == 200)
