"""AF_XDP interfaces with real Linux hosts behind veths: traffic, commands, devices that go, bad input; and
the generator's AF_XDP ports in front of a Linux router."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from peers.namespace import veth
from peers.network import DEVICE, Network, answers, namespaces, network, ping, ping_all
from peers.processes import Process, wait_until
from peers.router import Router, binary

#: Measures, fills the machine or looks at all of it: no other test runs beside these.
pytestmark = pytest.mark.alone

families = pytest.mark.parametrize("family", [4, 6], ids=["IPv4", "IPv6"])


@pytest.fixture(scope="module")
def pair() -> Iterator[Network]:
    """Two hosts that know each other, with links of jumbo frames."""
    with network("af_xdp") as made:
        made.meet()
        yield made


@families
@pytest.mark.parametrize("size", [56, 1400, 4000, 8900])
def test_pings_of_every_size_cross(pair: Network, family: int, size: int) -> None:
    ping_all(pair.left.host, pair.right.address(family), "-s", str(size), "-M", "do", count=5)


@families
def test_tcp_crosses(pair: Network, family: int) -> None:
    left, right = pair.left.host, pair.right.host
    server = right.start("iperf3", "-s", "-1", "--forceflush")
    wait_until("iperf3 listens", lambda: ":5201" in right.run("ss", "-Hltn").stdout)
    done = left.run("iperf3", "-c", pair.right.address(family), "-n", "4M", "-J")
    assert json.loads(done.stdout)["end"]["sum_received"]["bytes"] > 100_000
    server.forget()


def test_the_interface_says_what_it_is(pair: Network) -> None:
    router = pair.router
    assert "create interface af_xdp host-if port1\n" in router.ctl("show running-config")
    text = router.ctl("show hardware-interfaces port1/0")
    assert "af-xdp" in text
    assert "native" in text
    router.ctl("clear trace")
    router.ctl("trace add af-xdp-input 2")
    ping_all(pair.left.host, pair.right.ip4)
    assert "bytes from port1/0" in router.ctl("show trace")
    assert "port1/0-tx" in router.ctl("show runtime") or "port1/0" in router.ctl("show interface")


def test_a_device_that_goes_down_comes_back_and_goes_for_good() -> None:
    with network("af_xdp") as made:
        made.meet()
        router, left = made.router, made.left
        left.host.ip("link", "set", DEVICE, "down")
        shown = f"show hardware-interfaces {left.interface}"
        wait_until("the link is down", lambda: "no carrier" in router.ctl(shown))
        left.host.ip("link", "set", DEVICE, "up")
        router.wait_for_link(left.interface)
        left.host.ip("route", "replace", "default", "via", left.router_ip4)
        wait_until("it answers again", lambda: answers(ping(left.host, left.router_ip4, count=1)) == 1)
        left.host.ip("link", "del", DEVICE)
        wait_until("it is gone", lambda: "linux-state: gone" in router.ctl(shown))
        ping(made.right.host, left.ip4, "-W", "0.2", count=2)
        router.ctl(f"delete interface af_xdp {left.interface}")
        assert answers(ping(made.right.host, made.right.router_ip4)) == 3


def test_a_device_that_returns_is_taken_up_again_with_its_addresses() -> None:
    with network("af_xdp") as made:
        made.meet()
        router, left = made.router, made.left
        own = router.namespace
        assert own is not None
        for _ in range(2):
            left.host.ip("link", "del", DEVICE)
            veth(own, "port1", left.host, DEVICE, 1500)
            left.host.run("ethtool", "-K", DEVICE, "tx", "off")
            left.configure_host()
            router.wait_for_link(left.interface)
            wait_until("it answers again", lambda: answers(ping(left.host, left.router_ip4, count=1)) == 1)
            ping_all(left.host, made.right.ip4)
            ping_all(left.host, made.right.ip6)


def test_what_cannot_be_is_refused_in_words_and_changes_nothing() -> None:
    with namespaces("router", "host", "other") as (own, host, other), Router(own) as router:
        veth(own, "port1", host, DEVICE, 1500)
        veth(own, "port2", other, DEVICE, 1500)
        config = router.ctl("show running-config")
        program = Path(__file__).with_name("xdp_pass.py")
        foreign = own.start(sys.executable, str(program), "port2")
        wait_until("somebody's program stands there", lambda: "xdp" in own.ip("link", "show", "port2"))
        cases = {
            "create interface af_xdp host-if nowhere": "there is no Linux interface nowhere",
            "create interface af_xdp host-if far-too-long-for-linux": "no name of a Linux interface",
            "create interface af_xdp host-if port1 num-rx-queues 2": "port1 has 1 receive queues, not 2",
            "create interface af_xdp host-if port1 rx-queue-size 1000": "a power of two",
            "create interface af_xdp host-if port2": "port2 has an XDP program already",
            "delete interface af_xdp local0": "no interface 'local0'",
        }
        for line, expected in cases.items():
            assert expected in router.refused(line)
        assert router.ctl("show running-config") == config
        foreign.forget()
        assert router.ctl("create interface af_xdp host-if port1 name wan").strip() == "wan"
        for line, expected in {
            "create interface af_xdp host-if port1 name wan": "wan exists already",
            "create interface af_xdp host-if port1": "used by another AF_XDP socket",
        }.items():
            assert expected in router.refused(line)
        assert "create interface af_xdp host-if port1 name wan\n" in router.ctl("show running-config")
        for _ in range(10):  # Linux lets go of closed sockets a little later
            router.ctl("delete interface af_xdp wan")
            assert router.ctl("create interface af_xdp host-if port1 name wan").strip() == "wan"
        router.ctl("delete interface af_xdp wan")
        assert router.ctl("show running-config") == config
        assert "xdp" not in own.ip("link", "show", "port1")


@pytest.mark.parametrize("transmit", ["socket", "live"])
@families
def test_a_linux_router_forwards_what_the_generator_sends(transmit: str, family: int, tmp_path: Path) -> None:
    through_linux(transmit, family, tmp_path)


#: Programs that want the generator's core without end.
BUSY_PROGRAMS = 3


def test_live_frames_leave_though_other_programs_want_the_core(tmp_path: Path) -> None:
    busy = [
        Process(["taskset", "-c", str(GENERATOR_CORE), sys.executable, "-c", "while True: pass"])
        for _ in range(BUSY_PROGRAMS)
    ]
    try:
        told = through_linux("live", 4, tmp_path)
    finally:
        for one in busy:
            one.forget()
    # The class of idle threads would have less than a hundredth of the core, and fill the ring.
    assert told["not_sent"]["ring_full"] < 0.1 * told["intended"], told


#: Where the generator's worker stands in front of a Linux router.
GENERATOR_CORE = 0


def through_linux(transmit: str, family: int, tmp_path: Path) -> dict[str, Any]:
    """Send both ways through a Linux router; what the generator says, most of it received."""
    with namespaces("generator", "linux") as (own, linux):
        for number in (0, 1):
            veth(own, f"port{number}", linux, f"to{number}", 1500)
            own.sysctl(f"net.ipv6.conf.port{number}.disable_ipv6", 1)
            # A veth whose other end polls takes XDP frames.
            linux.run("ethtool", "-K", f"to{number}", "gro", "on")
            linux.ip("addr", "add", f"198.18.{number}.1/24", "dev", f"to{number}")
            linux.ip("addr", "add", f"2001:2:0:{number}::1/64", "dev", f"to{number}", "nodad")
        linux.sysctl("net.ipv4.ip_forward", 1)
        linux.sysctl("net.ipv6.conf.all.forwarding", 1)

        def port(number: int) -> dict[str, Any]:
            mine, gateway = (
                (f"198.18.{number}.2", f"198.18.{number}.1")
                if family == 4
                else (f"2001:2:0:{number}::2", f"2001:2:0:{number}::1")
            )
            device = {"interface": f"port{number}", "transmit": transmit}
            return {"af_xdp": device, f"ip{family}": [mine], "gateway": gateway}

        sizes = [{"size": size, "weight": 1} for size in (78, 100, 594, 1514)]
        streams = [{"from": 0, "to": 1, "frame": sizes}, {"from": 1, "to": 0, "frame": sizes}]
        path = tmp_path / "profile.yaml"
        path.write_text(
            json.dumps({"cores": [GENERATOR_CORE], "ports": [port(0), port(1)], "streams": streams})
        )
        words = ["run", str(path), "--rate", "20000", "--duration", "1s", "--drain", "2s", "--json"]
        done = own.run(str(binary("quiver-tg")), *words, "--socket", str(tmp_path / "tg.sock"))
        told: dict[str, Any] = json.loads(done.stdout)
        assert told["received"] > 0.5 * told["offered"] > 1_000, told
        return told
