"""Routing daemons, unchanged, with the router as their data plane: FRR and BIRD in the twins' namespace."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from peers.mirrored import Mirrored, give_addresses, mirrored_network
from peers.network import answers, ping, ping_all, reach
from peers.processes import wait_until
from peers.routing_daemons import Bird, Frr

#: Prefixes that a BGP bgp_peer has.
PREFIXES = 2000

BGP_PEER = """
router id 10.0.1.2;
protocol device {{ }}
protocol static {{ ipv4; {routes} }}
protocol static {{ ipv6; route 2001:db8:f::/48 blackhole; }}
protocol bgp {{
  local 10.0.1.2 as 65002; neighbor 10.0.1.1 as 65001;
  ipv4 {{ import all; export all; next hop self; }};
}}
protocol bgp {{
  local 2001:db8:1::2 as 65002; neighbor 2001:db8:1::1 as 65001;
  ipv6 {{ import all; export all; next hop self; }};
}}
"""


@pytest.fixture
def mirrored() -> Iterator[Mirrored]:
    """A router with twins, its addresses, and a network behind the left host."""
    with mirrored_network() as made:
        give_addresses(made)
        made.left.ip("link", "set", "lo", "up")
        made.left.ip("addr", "add", "20.0.7.1/32", "dev", "lo")
        yield made


def bgp_peer(mirrored: Mirrored, prefixes: int = PREFIXES) -> Bird:
    """BIRD on the left host, with prefixes to tell."""
    routes = " ".join(f"route 20.{n >> 8}.{n & 255}.0/24 blackhole;" for n in range(prefixes))
    return Bird(mirrored.left, BGP_PEER.format(routes=routes))


def frr_bgp(mirrored: Mirrored, *daemon_words: str) -> Frr:
    """FRR with BGP in the twins' namespace."""
    frr = Frr(mirrored.twins, "bgpd", zebra_words=daemon_words)
    frr.configure(
        """router bgp 65001
        bgp router-id 10.0.1.1
        no bgp ebgp-requires-policy
        neighbor 10.0.1.2 remote-as 65002
        neighbor 2001:db8:1::2 remote-as 65002
        address-family ipv6 unicast
        neighbor 2001:db8:1::2 activate"""
    )
    return frr


def row(mirrored: Mirrored, origin: str) -> dict[str, int]:
    """What the router says of routes from one origin."""
    return next(row for row in mirrored.router.json("show lcp sync") if row["from"] == origin)


def test_frr_learns_prefixes_by_bgp_and_the_router_forwards_to_them(mirrored: Mirrored) -> None:
    speaks = bgp_peer(mirrored)
    frr_bgp(mirrored)
    wait_until("all are there", lambda: len(mirrored.prefixes()) == PREFIXES, patience_s=60)
    assert "next-hop-object" in mirrored.route("20.0.7.0/24")
    ping_all(mirrored.right, "20.0.7.1")
    wait_until("IPv6, too", lambda: mirrored.router.answer("show ip6 fib 2001:db8:f::/48").code == 0)
    speaks.process.stop()
    wait_until("all are gone", lambda: not mirrored.prefixes(), patience_s=60)


def test_routes_by_fpm_stay_while_frr_is_away(mirrored: Mirrored) -> None:
    bgp_peer(mirrored)
    mirrored.router.ctl("lcp fpm listen")
    words = ("-M", "dplane_fpm_nl")
    frr = frr_bgp(mirrored, *words)
    frr.configure("fpm address 127.0.0.1")

    def by_fpm() -> int:
        return len(mirrored.prefixes("dynamic"))

    wait_until("all came by FPM", lambda: by_fpm() == PREFIXES, patience_s=60)
    reach(mirrored.right, "20.0.7.1")
    frr.kill()
    mirrored.twins.ip("route", "flush", "proto", "bgp", check=False)
    wait_until("Linux has none", lambda: not mirrored.prefixes(), patience_s=60)
    assert by_fpm() == PREFIXES
    ping_all(mirrored.right, "20.0.7.1", count=5)
    # The new one has fewer: what it does not say again goes.
    again = frr_bgp(mirrored, *words)
    again.configure(
        """router bgp 65001
        address-family ipv4 unicast
        neighbor 10.0.1.2 prefix-list few in
        exit
        exit
        ip prefix-list few permit 20.0.0.0/16 le 24"""
    )
    again.configure("fpm address 127.0.0.1")
    wait_until("the rest is swept", lambda: by_fpm() == 256, patience_s=60)
    ping_all(mirrored.right, "20.0.7.1")


def test_frr_and_bird_speak_ospf_through_the_router(mirrored: Mirrored) -> None:
    Bird(
        mirrored.left,
        """router id 10.0.1.2;
        protocol device { }
        protocol static { ipv4; route 198.51.100.0/24 blackhole; }
        protocol ospf v2 {
          ipv4 { import all; export where source = RTS_STATIC; };
          area 0 { interface "h0" { hello 1; dead 4; }; };
        }""",
    )
    frr = Frr(mirrored.twins, "ospfd")
    frr.configure(
        """interface e0
        ip ospf hello-interval 1
        ip ospf dead-interval 4
        exit
        router ospf
        network 10.0.1.0/24 area 0"""
    )
    wait_until("the route came", lambda: "198.51.100.0/24" in mirrored.prefixes(), patience_s=90)


def test_two_frr_speak_isis_through_the_router(mirrored: Mirrored) -> None:
    """IS-IS is carried in LLC frames to groups of its own."""

    def speaks(host: Frr, device: str, number: int) -> None:
        host.configure(
            f"""interface {device}
            ip router isis core
            isis hello-interval 1
            exit
            router isis core
            net 49.0001.0000.0000.000{number}.00
            is-type level-2-only"""
        )

    mirrored.left.ip("addr", "add", "198.51.100.1/24", "dev", "lo")
    there = Frr(mirrored.left, "isisd")
    speaks(there, "h0", 2)
    there.configure("interface lo\nip router isis core\nisis passive")
    here = Frr(mirrored.twins, "isisd")
    speaks(here, "e0", 1)
    wait_until("the route came", lambda: "198.51.100.0/24" in mirrored.prefixes(), patience_s=90)
    wait_until("it forwards", lambda: answers(ping(mirrored.right, "198.51.100.1", count=1)) == 1)


def test_bird_in_the_twins_namespace_gives_the_router_its_routes(mirrored: Mirrored) -> None:
    bgp_peer(mirrored, 300)
    here = Bird(
        mirrored.twins,
        """router id 10.0.1.1;
        protocol device { }
        protocol kernel { ipv4 { import none; export where source = RTS_BGP; }; }
        protocol kernel { ipv6 { import none; export where source = RTS_BGP; }; }
        protocol bgp {
          local 10.0.1.1 as 65001; neighbor 10.0.1.2 as 65002;
          ipv4 { import all; export none; };
        }
        protocol bgp {
          local 2001:db8:1::1 as 65001; neighbor 2001:db8:1::2 as 65002;
          ipv6 { import all; export none; };
        }""",
    )
    wait_until("all are there", lambda: len(mirrored.prefixes()) == 300, patience_s=60)
    wait_until("IPv6, too", lambda: mirrored.router.answer("show ip6 fib 2001:db8:f::/48").code == 0)
    ping_all(mirrored.right, "20.0.7.1")
    here.process.stop()
    wait_until("all are gone", lambda: not mirrored.prefixes(), patience_s=60)


def test_frr_redistributes_routes_of_the_operator(mirrored: Mirrored) -> None:
    hears = bgp_peer(mirrored, prefixes=1)
    frr = frr_bgp(mirrored)
    frr.configure(
        """router bgp 65001
        address-family ipv4 unicast
        redistribute kernel"""
    )
    mirrored.router.ctl("ip route add 198.51.100.0/24 via 10.0.2.2 tap1")
    heard = "198.51.100.0/24"
    wait_until("the peer learns it", lambda: heard in hears.ask("show", "route"), patience_s=60)
    assert mirrored.prefixes() == {"20.0.0.0/24"}, "it does not come back as the kernel's"
    mirrored.router.ctl("ip route del 198.51.100.0/24")
    wait_until("the peer loses it", lambda: heard not in hears.ask("show", "route"), patience_s=60)
