"""A full table by BGP: when Linux has it from the daemon, and when the router forwards it.

`PYTHONPATH=tests .venv/bin/python -m figures.full_table [--ip4 901899] [--ip6 160147] [--only BIRD]`

A row is a daemon and the way its routes take. "alone" is the daemon's install into Linux without a
router beside it; "Linux" and "router" are of one run. All begin with the first routes in Linux.
"""

from __future__ import annotations

import argparse
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from peers.mirrored import give_addresses, mirrored_network
from peers.namespace import Namespace
from peers.processes import Process, wait_until
from peers.router import Router
from peers.routing_daemons import Bird, Frr

#: How long a table may take, seconds.
PATIENCE_S = 900.0
#: Between two looks at how many routes there are, seconds.
LOOK_S = 0.2
#: More than a namespace has of its own.
FIRST_ROUTES = 100

#: Starts a daemon in a namespace that learns the table from 10.0.1.2 and 2001:db8:1::2.
Start = Callable[[Namespace], Process]
#: The first IPv4 prefix, without its last byte.
FIRST_IP4 = 16 << 16


@dataclass(frozen=True)
class Size:
    """Prefixes of a table."""

    ip4: int
    ip6: int

    def last(self) -> tuple[str, str]:
        """An address of the last prefix of each family."""
        n = FIRST_IP4 + self.ip4 - 1
        m = self.ip6 - 1
        return f"{n >> 16}.{n >> 8 & 255}.{n & 255}.1", f"2400:{m >> 16:x}:{m & 65535:x}::1"


def bgp_peer(host: Namespace, size: Size) -> Bird:
    """BIRD with a table to tell, as 65002."""
    ip4 = " ".join(
        f"route {n >> 16}.{n >> 8 & 255}.{n & 255}.0/24 blackhole;"
        for n in range(FIRST_IP4, FIRST_IP4 + size.ip4)
    )
    ip6 = " ".join(f"route 2400:{n >> 16:x}:{n & 65535:x}::/48 blackhole;" for n in range(size.ip6))
    bird = Bird(
        host,
        f"""router id 10.0.1.2;
        protocol device {{ }}
        protocol static {{ ipv4; {ip4} }}
        protocol static {{ ipv6; {ip6} }}
        protocol bgp {{
          passive; local 10.0.1.2 as 65002; neighbor 10.0.1.1 as 65001;
          ipv4 {{ import all; export all; next hop self; }};
        }}
        protocol bgp {{
          passive; local 2001:db8:1::2 as 65002; neighbor 2001:db8:1::1 as 65001;
          ipv6 {{ import all; export all; next hop self; }};
        }}""",
    )

    def is_ready() -> bool:
        counts = bird.ask("show", "route", "count")
        return f"for {size.ip4} networks" in counts and f"for {size.ip6} networks" in counts

    wait_until("the peer has its table", is_ready, PATIENCE_S)
    return bird


def frr(host: Namespace, *zebra_words: str) -> Process:
    """FRR's zebra and bgpd as 65001; returns zebra."""
    made = Frr(host, "bgpd", zebra_words=zebra_words)
    if zebra_words:
        made.configure("fpm address 127.0.0.1")
    made.configure(
        """router bgp 65001
        bgp router-id 10.0.1.1
        no bgp ebgp-requires-policy
        neighbor 10.0.1.2 remote-as 65002
        neighbor 10.0.1.2 timers connect 1
        neighbor 2001:db8:1::2 remote-as 65002
        neighbor 2001:db8:1::2 timers connect 1
        address-family ipv6 unicast
        neighbor 2001:db8:1::2 activate"""
    )
    return made.processes[0]


def bird(host: Namespace) -> Process:
    """BIRD as 65001, with its kernel protocol."""
    made = Bird(
        host,
        """router id 10.0.1.1;
        protocol device { }
        protocol direct { ipv4; ipv6; }
        protocol kernel { ipv4 { import none; export where source = RTS_BGP; }; }
        protocol kernel { ipv6 { import none; export where source = RTS_BGP; }; }
        protocol bgp {
          connect delay time 1;
          local 10.0.1.1 as 65001; neighbor 10.0.1.2 as 65002;
          ipv4 { import all; export none; };
        }
        protocol bgp {
          connect delay time 1;
          local 2001:db8:1::1 as 65001; neighbor 2001:db8:1::2 as 65002;
          ipv6 { import all; export none; };
        }""",
    )
    return made.process


def linux_routes(pid: int) -> tuple[int, int]:
    """IPv4 and IPv6 routes of the namespace that a process is in, with the few of its own addresses."""
    net = Path(f"/proc/{pid}/net")
    words = (net / "fib_triestat").read_text().split()
    ip4 = int(words[words.index("Prefixes:") + 1]) if "Prefixes:" in words else 0
    return ip4, int((net / "rt6_stats").read_text().split()[3], 16)


def router_routes(router: Router) -> tuple[int, int]:
    """Prefixes of /24 and of /48 that the router forwards by."""

    def count(family: str, length: int) -> int:
        rows = router.json(f"show {family} fib table 0 summary")
        return sum(int(row["count"]) for row in rows if row["length_bits"] == length)

    return count("ip", 24), count("ip6", 48)


def comes_out(source: Namespace, sink: Namespace, size: Size) -> None:
    """Packets to the last prefix of each family reach the host that told of it."""
    families = zip(size.last(), (socket.AF_INET, socket.AF_INET6), strict=True)
    with sink.raw_socket("h0") as raw:
        for address, family in families:
            with source.socket(family, socket.SOCK_DGRAM) as udp:
                udp.sendto(b"to the last prefix", (address, 9))
            while (frame := raw.receive(5.0)) is not None:
                if b"to the last prefix" in frame:
                    break
            else:
                raise AssertionError(f"nothing came out for {address}")


@contextmanager
def two_hosts() -> Iterator[tuple[Namespace, Namespace]]:
    """A BGP peer's host and a daemon's, with a link between them and no router."""
    own, other = Namespace("alone"), Namespace("peer")
    try:
        own.ip("link", "add", "e0", "type", "veth", "peer", "name", "h0", "netns", other.name)
        for host, device, last in ((own, "e0", 1), (other, "h0", 2)):
            host.ip("link", "set", "lo", "up")
            host.ip("link", "set", device, "up")
            host.ip("addr", "add", f"10.0.1.{last}/24", "dev", device)
            host.ip("addr", "add", f"2001:db8:1::{last}/64", "dev", device, "nodad")
        yield own, other
    finally:
        own.remove()
        other.remove()


def has_all(have: tuple[int, int], wanted: tuple[int, int]) -> bool:
    """As many routes of both families."""
    return have[0] >= wanted[0] and have[1] >= wanted[1]


def first_routes(pid: int) -> float:
    """Wait for the first routes in Linux; returns when they were there."""
    wait_until("routes come", lambda: linux_routes(pid)[0] > FIRST_ROUTES, PATIENCE_S)
    return time.monotonic()


def until_linux_has(pid: int, wanted: tuple[int, int], start: float) -> float | None:
    """Seconds since the start when Linux has all; nothing before."""
    return time.monotonic() - start if has_all(linux_routes(pid), wanted) else None


def alone(start_daemon: Start, size: Size) -> float:
    """Seconds of a daemon's install into Linux without a router beside it."""
    with two_hosts() as (own, other):
        told = bgp_peer(other, size)
        daemon = start_daemon(own)
        begun = first_routes(daemon.pid)
        while (done := until_linux_has(daemon.pid, (size.ip4, size.ip6), begun)) is None:
            assert time.monotonic() - begun < PATIENCE_S, linux_routes(daemon.pid)
            time.sleep(LOOK_S)
        told.process.stop()
        return done


def beside(start_daemon: Start, size: Size, *, by_fpm: bool) -> tuple[float, float]:
    """Seconds until Linux has all, and until the router forwards to all."""
    with mirrored_network() as mirrored:
        give_addresses(mirrored)
        told = bgp_peer(mirrored.left, size)
        if by_fpm:
            mirrored.router.ctl("lcp fpm listen")
        wanted = (size.ip4, size.ip6)
        daemon = start_daemon(mirrored.twins)
        begun = first_routes(daemon.pid)
        linux = router = None
        while linux is None or router is None:
            linux = linux or until_linux_has(daemon.pid, wanted, begun)
            have = router_routes(mirrored.router)
            if router is None and has_all(have, wanted):
                router = time.monotonic() - begun
            assert time.monotonic() - begun < PATIENCE_S, (linux_routes(daemon.pid), have)
            time.sleep(LOOK_S)
        comes_out(mirrored.right, mirrored.left, size)
        told.process.stop()
        return linux, router


def main() -> None:
    """Print a row for each daemon and way."""
    words = argparse.ArgumentParser(description="A full table by BGP, in Linux and in the router.")
    words.add_argument("--ip4", type=int, default=901_899, help="IPv4 prefixes")
    words.add_argument("--ip6", type=int, default=160_147, help="IPv6 prefixes")
    words.add_argument("--only", default="", help="rows whose name has this in it")
    given = words.parse_args()
    size = Size(given.ip4, given.ip6)
    rows: list[tuple[str, Start, bool]] = [
        ("FRR by netlink", frr, False),
        ("FRR by FPM", lambda host: frr(host, "-M", "dplane_fpm_nl"), True),
        ("BIRD by netlink", bird, False),
    ]
    print(f"{size.ip4} + {size.ip6} prefixes, seconds")
    print(f"{'':16} {'alone':>7} {'Linux':>7} {'router':>7} {'router / Linux':>15} {'router / alone':>15}")
    for name, start_daemon, by_fpm in (row for row in rows if given.only in row[0]):
        own = alone(start_daemon, size)
        linux, router = beside(start_daemon, size, by_fpm=by_fpm)
        print(
            f"{name:16} {own:7.1f} {linux:7.1f} {router:7.1f} {router / linux:15.2f} {router / own:15.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
