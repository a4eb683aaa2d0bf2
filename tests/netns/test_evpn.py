"""EVPN by FRR: a Linux host with a VXLAN device on one side, the router with its links in Linux on
the other one. FRR runs unchanged on both."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from peers.capture import Capture
from peers.namespace import Namespace, veth
from peers.network import DEVICE, namespaces, ping, ping_all, reach
from peers.processes import need, wait_until
from peers.router import Router
from peers.routing_daemons import Frr

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guide" / "evpn.md"
#: The underlay's addresses: the router's, which its twin has, and the peer's.
OURS, PEERS = "10.0.1.1", "10.0.1.2"
VNI, DOMAIN, TUNNEL = 100, 1, "vxlan_tunnel0"
#: A host behind the router, one behind the peer's bridge, and the peer's bridge itself.
HERE, THERE, BRIDGE = "10.7.0.1", "10.7.0.2", "10.7.0.9"
MTU_BYTES = 1400
#: Another address of the peer.
SECOND = "10.0.1.3"
#: The address of the router's routed interface, the bridge that is its twin, and neighbours that the
#: router makes in Linux.
ROUTED, TWIN, OWN = "10.7.0.254", "vx100-b", ("proto", "81")
#: The routed interface of the bridge domain.
BVI = "loop5"
#: What FRR says of a station behind the VXLAN device to the bridge.
BEHIND = "master extern_learn"
#: More stations behind the peer.
MANY = 2000


@dataclass(frozen=True)
class Fabric:
    """The router with a host, the namespace of its twins, the peer, and a host behind that."""

    router: Router
    twins: Namespace
    peer: Namespace
    here: Namespace
    there: Namespace
    daemons: tuple[Frr, ...]

    def stations(self) -> dict[str, str]:
        """The stations of the bridge domain, and the interfaces that they are behind."""
        rows = self.router.json(f"show l2fib bd {DOMAIN}")["entries"]
        return {row["mac"]: row["interface"] for row in rows}

    def tunnel(self) -> dict[str, Any]:
        """What the router says of the VXLAN interface."""
        (row,) = self.router.json("show vxlan interface")
        return dict(row)


def guide(kind: str) -> str:
    """The block of this kind of the walk-through."""
    found = re.search(rf"^```{kind}\n(.*?)^```$", GUIDE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert found
    return found[1]


def bgp(own: str, other: str) -> str:
    """FRR's configuration of a side: that of the walk-through, or its mirror image."""
    swapped = {OURS: own, PEERS: other}
    return re.sub(r"10\.0\.1\.[12]", lambda address: swapped[address[0]], guide("frr"))


def host(namespace: Namespace, address: str) -> None:
    """Give a host its address in the overlay."""
    namespace.ip("link", "set", DEVICE, "mtu", str(MTU_BYTES))
    namespace.ip("addr", "add", f"{address}/24", "dev", DEVICE)


def linux_vtep(peer: Namespace) -> None:
    """The peer's VXLAN device and bridge, with a host's link at `port0`."""
    words = ["id", str(VNI), "local", PEERS, "dstport", "4789", "nolearning"]
    peer.ip("link", "add", "br0", "type", "bridge")
    peer.ip("link", "add", "vx0", "type", "vxlan", *words)
    for device in ("vx0", "port0"):
        peer.ip("link", "set", device, "master", "br0", "up")
    peer.run("bridge", "link", "set", "dev", "vx0", "learning", "off", "neigh_suppress", "on")
    peer.ip("link", "set", "br0", "up")
    peer.ip("addr", "add", f"{BRIDGE}/24", "dev", "br0")


def routed(commands: str) -> str:
    """Commands of the walk-through, with a routed interface in the bridge domain."""
    *others, _ = commands.strip().splitlines()
    return "\n".join([*others, guide("quiver-addresses")])


@contextmanager
def fabric(*, has_frr: bool = True, is_routed: bool = False) -> Iterator[Fabric]:
    """Both sides, with FRR running unless the test writes to Linux itself."""
    with namespaces("router", "twins", "peer", "here", "there") as made, Router(made[0]) as router:
        _, twins, peer, here, there = made
        router.configure(
            f"""create tap id 0 host-if-name under host-ns {peer.name}
            create tap id 1 host-if-name {DEVICE} host-ns {here.name}"""
        )
        commands = guide("quiver").replace("netns fabric", f"netns {twins.name}")
        router.configure(routed(commands) if is_routed else commands)
        twins.ip("addr", "add", f"{OURS}/24", "dev", "under")
        peer.ip("link", "set", "under", "mtu", "1600")
        peer.ip("addr", "add", f"{PEERS}/24", "dev", "under")
        veth(peer, "port0", there, DEVICE, MTU_BYTES)
        linux_vtep(peer)
        host(here, HERE)
        host(there, THERE)
        reach(peer, OURS)
        sides = [(twins, OURS, PEERS), (peer, PEERS, OURS)] if has_frr else []
        daemons = [Frr(side, "bgpd", config=bgp(own, other)) for side, own, other in sides]
        yield Fabric(router, twins, peer, here, there, tuple(daemons))


def test_hosts_talk_and_move_between_the_router_and_linux() -> None:
    need("vtysh", "bridge")
    with fabric() as made:
        router, here, there = made.router, made.here, made.there

        # Type 3: each side sends frames to all stations to the other one.
        wait_until("the peer is in the flood list", lambda: made.tunnel()["flood_list"] == [PEERS])
        fdb = made.peer.run
        wait_until(
            "the peer floods to the router",
            lambda: f"00:00:00:00:00:00 dst {OURS}" in fdb("bridge", "fdb", "show", "dev", "vx0").stdout,
        )
        reach(here, THERE)
        ping_all(here, THERE)
        ping_all(there, HERE, "-s", "1300")

        # Type 2: both know behind whom the other one's host is.
        mac_here, mac_there = here.mac(DEVICE), there.mac(DEVICE)
        wait_until("the router knows the peer's host", lambda: made.stations().get(mac_there) == TUNNEL)
        wait_until(
            "the peer knows the router's host",
            lambda: f"{mac_here} dst {OURS}" in fdb("bridge", "fdb", "show", "dev", "vx0").stdout,
        )
        before = router.counters(TUNNEL)
        ping_all(here, THERE)
        sent = router.counters(TUNNEL)["tx_packets"] - before["tx_packets"]
        assert 3 <= sent <= 6

        # The addresses of the peer's bridge are announced with its MAC: the router answers for them.
        made.peer.run("ping", "-c", "1", THERE, check=False)
        wait_until(
            "the router answers for the peer's host",
            lambda: THERE in router.ctl(f"show bridge-domain {DOMAIN} arp"),
        )
        before_arp = router.errors()
        here.ip("neigh", "flush", "all")
        ping_all(here, THERE)
        answered = [
            count for (node, _), count in router.counted_since(before_arp).items() if "arp-term" in node
        ]
        assert answered, router.errors()

        # MAC mobility: the peer's host moves behind the router, and back.
        moved = here.mac(DEVICE)
        there.ip("link", "set", DEVICE, "down")
        here.ip("link", "set", DEVICE, "address", mac_there)
        here.ip("addr", "add", f"{THERE}/24", "dev", DEVICE)
        ping(here, BRIDGE, count=1)
        wait_until("the host is behind the router", lambda: made.stations().get(mac_there) == "tap1")
        wait_until(
            "the peer sends to the router",
            lambda: f"{mac_there} dst {OURS}" in fdb("bridge", "fdb", "show", "dev", "vx0").stdout,
        )
        here.ip("addr", "del", f"{THERE}/24", "dev", DEVICE)
        here.ip("link", "set", DEVICE, "address", moved)
        there.ip("link", "set", DEVICE, "up")
        reach(there, BRIDGE)
        wait_until("the host is back", lambda: made.stations().get(mac_there) == TUNNEL)
        reach(here, THERE)
        router.check_sound()


def test_many_stations_are_taken_over_and_go_with_the_peer() -> None:
    need("vtysh", "bridge")
    with fabric() as made:
        lines = [
            f"fdb add 02:aa:00:00:{number >> 8:02x}:{number & 255:02x} dev port0 master static"
            for number in range(MANY)
        ]
        made.peer.run("bridge", "-batch", "-", stdin="\n".join(lines) + "\n", patience_s=60)
        wait_until("all are known", lambda: made.tunnel()["stations"] >= MANY, 60)
        made.peer.ip("link", "set", "vx0", "down")
        wait_until("all are gone", lambda: made.tunnel()["stations"] < MANY // 2, 60)
        made.router.ctl(f"lcp evpn del {TUNNEL}")
        wait_until("its links are gone", lambda: "vx100" not in made.twins.ip("link", "show"))


def test_stations_of_a_next_hop_object_move_with_it_and_go_with_the_device() -> None:
    """Linux's entries name a group of VTEPs, as FRR writes them for an Ethernet segment (RFC 7432 §8.2)."""
    need("bridge")
    with fabric(has_frr=False) as made:
        twins, peer, router = made.twins, made.peer, made.router
        wait_until("the links are there", lambda: "vx100-l" in twins.ip("link", "show"))
        peer.ip("addr", "add", f"{SECOND}/24", "dev", "under")
        for number, vtep in ((1, PEERS), (2, SECOND)):
            twins.ip("nexthop", "add", "id", str(number), "via", vtep, "fdb")
        twins.ip("nexthop", "add", "id", "10", "group", "1/2", "fdb")
        target = "02:ab:00:00:00:01"
        macs = [f"02:aa:00:00:{number >> 8:02x}:{number & 255:02x}" for number in range(MANY)]
        lines = [
            f"fdb add {mac} dev vx100 {at}" for mac in [target, *macs] for at in ("nhid 10 self", BEHIND)
        ]
        twins.run("bridge", "-batch", "-", stdin="\n".join(lines) + "\n", patience_s=60)
        wait_until("all are known", lambda: made.tunnel()["stations"] == MANY + 1, 30)

        made.here.ip("neigh", "add", "10.7.0.77", "lladdr", target, "dev", DEVICE)

        def reaches(vtep: str) -> None:
            with Capture(peer, "under", f"udp and dst host {vtep}") as capture:
                ping(made.here, "10.7.0.77", "-W", "0.1", count=2)
                wait_until(f"frames for {vtep}", lambda: len(capture.lines()) >= 2)

        reaches(PEERS)
        # The first VTEP is dead: one change in Linux, one store in the router.
        read = router.json("show lcp sync")[0]["changes_read"]
        twins.ip("nexthop", "replace", "id", "10", "group", "2", "fdb")
        reaches(SECOND)
        assert router.json("show lcp sync")[0]["changes_read"] - read < MANY // 10
        twins.ip("nexthop", "replace", "id", "10", "group", "1/2", "fdb")
        reaches(PEERS)
        twins.ip("nexthop", "del", "id", "1")
        reaches(SECOND)
        assert made.tunnel()["stations"] == MANY + 1

        twins.ip("link", "del", "vx100")
        wait_until("all are gone", lambda: made.tunnel()["stations"] == 0, 30)
        wait_until("the device is made anew", lambda: "vx100:" in twins.ip("link", "show"))
        router.check_sound()


def neighbours(made: Fabric, *words: str) -> str:
    """The neighbours that Linux has beside the bridge of the VNI."""
    return made.twins.ip("neigh", "show", "dev", TWIN, *words)


def test_addresses_of_hosts_beside_a_routed_interface_are_announced() -> None:
    """Type 2 routes with addresses (RFC 7432 §10): the peer's bridge answers ARP for the router's host."""
    need("vtysh", "bridge")
    with fabric(is_routed=True) as made:
        router, here, there, peer = made.router, made.here, made.there, made.peer
        reach(here, ROUTED)
        mac = here.mac(DEVICE)
        wait_until("Linux has the neighbour", lambda: f"{HERE} lladdr {mac}" in neighbours(made, *OWN))
        routes = "show bgp l2vpn evpn route type macip"
        wait_until("the peer has the route", lambda: f"[{HERE}]" in made.daemons[1].ask(routes), 60)
        known = f"{HERE} lladdr {mac} extern_learn"
        wait_until("the peer's bridge has it", lambda: known in peer.ip("neigh", "show", "dev", "br0"))

        # The peer's bridge answers in the place of the host, which does not hear the question.
        there.ip("neigh", "flush", "all")
        with Capture(here, DEVICE, "arp") as capture:
            reach(there, HERE)
            asked = [line for line in capture.lines() if f"Who has {HERE}? Tell {THERE}" in line]
        assert not asked, asked
        assert mac in there.ip("neigh", "show", HERE)

        # The router's own is not taken for one of Linux's, and it keeps its age.
        (row,) = (row for row in router.json(f"show ip neighbor {BVI}") if row["address"] == HERE)
        assert row["state"] not in ("static", "external")

        # A host behind the peer is FRR's own to announce: the router leaves it alone.
        reach(there, ROUTED)
        wait_until("the router knows the peer's host", lambda: there.mac(DEVICE) in made.stations())
        wait_until("it is not the router's", lambda: THERE not in neighbours(made, *OWN))

        # Forgotten here, it is withdrawn there.
        here.ip("link", "set", DEVICE, "down")
        router.ctl(f"ip neighbor del {BVI} {HERE}")
        wait_until("Linux has lost it", lambda: HERE not in neighbours(made))
        wait_until("the peer has lost it", lambda: f"[{HERE}]" not in made.daemons[1].ask(routes), 60)
        wait_until("its bridge, too", lambda: HERE not in peer.ip("neigh", "show", "dev", "br0"))
        assert all(process.is_alive for frr in made.daemons for process in frr.processes)
        router.check_sound()


def test_a_host_that_changes_its_mac_address_or_side_is_announced_anew() -> None:
    need("vtysh", "bridge")
    with fabric(is_routed=True) as made:
        here, there, peer = made.here, made.there, made.peer
        reach(here, ROUTED)
        old, new = here.mac(DEVICE), "02:00:00:00:0a:01"

        def has(mac: str) -> bool:
            return f"{HERE} lladdr {mac} extern_learn" in peer.ip("neigh", "show", "dev", "br0")

        wait_until("the peer has the address", lambda: has(old), 60)
        here.ip("link", "set", DEVICE, "address", new)
        reach(here, ROUTED)
        wait_until("the peer has the new MAC address", lambda: has(new), 60)
        # The address moves behind the peer: its announcement takes the place of the router's.
        here.ip("link", "set", DEVICE, "down")
        there.ip("addr", "add", f"{HERE}/24", "dev", DEVICE)
        there.run("ping", "-c", "1", "-I", HERE, BRIDGE, check=False)
        moved = f"{HERE} lladdr {there.mac(DEVICE)} extern_learn"
        peer.run("ping", "-c", "2", HERE, check=False)
        wait_until("the address is behind the peer", lambda: moved in neighbours(made), 60)
        assert HERE not in neighbours(made, *OWN)
        wait_until(
            "the router knows it from FRR",
            lambda: (
                [
                    row["state"]
                    for row in made.router.json(f"show ip neighbor {BVI}")
                    if row["address"] == HERE
                ]
                == ["external"]
            ),
        )
        assert all(process.is_alive for frr in made.daemons for process in frr.processes)
        made.router.check_sound()


def test_neighbours_that_an_earlier_router_left_beside_a_bridge_go() -> None:
    need("bridge")
    with fabric(has_frr=False, is_routed=True) as made:
        reach(made.here, ROUTED)
        wait_until("Linux has the neighbour", lambda: HERE in neighbours(made, *OWN))
        # Linux forgets the neighbours of a link that gets another layer 2 address.
        mac = "02:00:00:00:0b:01"
        made.router.ctl(f"set interface mac address {BVI} {mac}")
        wait_until("the bridge has the address", lambda: made.twins.mac(TWIN) == mac)
        wait_until("Linux has the neighbour again", lambda: HERE in neighbours(made, *OWN))
        made.router.kill()
        assert HERE in neighbours(made, *OWN), "nobody took it away"
        with Router(Namespace("again")) as router:
            router.configure(
                f"""create tap id 0 host-if-name t0
                lcp create tap0 host-if e7 netns {made.twins.name}"""
            )
            wait_until("it is gone", lambda: HERE not in neighbours(made))
