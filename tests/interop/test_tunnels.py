"""Tunnels with Open vSwitch at the other end: GRE for frames and packets, Geneve, ERSPAN."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from peers.namespace import Namespace, veth
from peers.network import DEVICE, answers, namespaces, ping, ping_all
from peers.open_vswitch import OpenVSwitch, open_vswitch
from peers.processes import need, parse_json, wait_until
from peers.router import Router

#: The ends of the tunnel.
ROUTER, SWITCH = "172.31.1.1", "172.31.1.2"
#: Largest packet of the links, bytes.
MTU_BYTES = 1500
#: What an Ethernet header, GRE and IPv4 take of it.
FRAME_OVERHEAD_BYTES = 14 + 4 + 20
PACKET_OVERHEAD_BYTES = 4 + 20
KEY_BYTES = 4
#: A transfer over TCP, and what must have arrived of it when its sender ends, which may have the last
#: megabytes in its buffer.
TRANSFER = "16M"
TRANSFER_BYTES_MIN = 2_000_000


@dataclass(frozen=True)
class Tunnelled:
    """A router and a switch joined by one link, and a host behind each: `near` and `far`."""

    router: Router
    switch: OpenVSwitch
    near: Namespace
    far: Namespace

    def transfer(self, sender: Namespace, receiver: Namespace, address: str) -> None:
        """Send some megabytes over TCP."""
        listening = receiver.start("iperf3", "-s", "-1", "--forceflush")
        listening.wait_for_text("listening")
        result = parse_json(sender.run("iperf3", "-c", address, "-J", "-n", TRANSFER, check=False).stdout)
        assert "error" not in result, result["error"]
        assert result["end"]["sum_received"]["bytes"] >= TRANSFER_BYTES_MIN
        listening.wait()

    def wait_for_answers(self, host: Namespace, address: str) -> None:
        """The switch resolves its tunnel's neighbour when the first packet wants to go there."""
        wait_until(f"{address} answers", lambda: answers(ping(host, address, count=1)) == 1)


@contextmanager
def tunnelled(near: str, far: str, options: list[str], kind: str = "gre") -> Iterator[Tunnelled]:
    """Hosts with these addresses (with their lengths), and a switch whose tunnel `gre0` is of this kind."""
    need("iperf3", "ethtool")
    with namespaces("router", "switch", "near", "far") as (own, middle, host, other), Router(own) as router:
        veth(own, "wire", middle, "uplink", MTU_BYTES)
        veth(own, "port", host, DEVICE, MTU_BYTES)
        veth(middle, "port", other, DEVICE, MTU_BYTES)
        for device in ("wire", "port"):
            own.sysctl(f"net.ipv6.conf.{device}.disable_ipv6", 1)
            router.ctl(f"create host-interface name {device}")
        router.configure(f"""set interface ip address host-wire {ROUTER}/24
            set interface state host-wire up
            set interface state host-port up""")
        for namespace, address in ((host, near), (other, far)):
            namespace.ip("addr", "add", address, "dev", DEVICE)
            # A tunnel carries packets whole: it cannot leave segments to a device.
            namespace.run("ethtool", "-K", DEVICE, "tso", "off", "gso", "off", "tx", "off")
        with open_vswitch(middle) as switch:
            switch.bridge("underlay")
            switch.port("underlay", "uplink")
            middle.ip("addr", "add", f"{SWITCH}/24", "dev", "underlay")
            middle.ip("link", "set", "underlay", "up")
            switch.bridge("overlay")
            switch.port("overlay", "port")
            settings = [f"type={kind}", f"options:remote_ip={ROUTER}", f"options:local_ip={SWITCH}"]
            switch.vsctl("add-port", "overlay", "gre0", "--", "set", "Interface", "gre0", *settings, *options)
            router.wait_for_link("host-wire", "host-port")
            yield Tunnelled(router, switch, host, other)


@pytest.mark.parametrize("key", [None, 42], ids=["no-key", "key"])
def test_frames_of_a_bridge_reach_the_bridge_at_the_other_end(key: int | None) -> None:
    """Hosts of one subnet: ARP, ping and TCP in both directions, and frames that just fit."""
    options = [] if key is None else [f"options:key={key}"]
    words = "" if key is None else f" key {key}"
    with tunnelled("10.50.0.1/24", "10.50.0.2/24", options) as lab:
        lab.router.configure(f"""create gre tunnel src {ROUTER} dst {SWITCH} teb{words}
            set interface state gre0 up
            create bridge-domain 1
            set interface l2 bridge host-port 1
            set interface l2 bridge gre0 1""")
        lab.wait_for_answers(lab.near, "10.50.0.2")
        ping_all(lab.near, "10.50.0.2", count=50)
        ping_all(lab.far, "10.50.0.1", count=50)
        fits = MTU_BYTES - FRAME_OVERHEAD_BYTES - (0 if key is None else KEY_BYTES) - 28
        ping_all(lab.near, "10.50.0.2", "-s", str(fits), "-M", "do")
        ping_all(lab.far, "10.50.0.1", "-s", str(fits), "-M", "do")
        # The outer packet is fragmented, and the switch does not put fragments together.
        ping(lab.near, "10.50.0.2", "-s", str(fits + 1), "-M", "do", count=1)
        lab.near.ip("link", "set", DEVICE, "mtu", str(fits + 28))
        lab.far.ip("link", "set", DEVICE, "mtu", str(fits + 28))
        lab.transfer(lab.near, lab.far, "10.50.0.2")
        lab.transfer(lab.far, lab.near, "10.50.0.1")
        assert lab.router.counters("gre0")["rx_packets"] > 100
        shown = lab.router.json("show gre tunnel")[0]
        assert (shown["underlay"], shown["packets"] > 100) == ("up", True)
        lab.router.check_sound()


def test_packets_are_routed_into_a_tunnel_and_their_senders_told_what_fits() -> None:
    """The switch carries IP packets without Ethernet headers between its port and the tunnel."""
    with tunnelled("10.60.1.2/24", "10.60.2.2/24", ["options:packet_type=legacy_l3"]) as lab:
        for namespace, gateway in ((lab.near, "10.60.1.1"), (lab.far, "10.60.2.1")):
            namespace.ip("route", "add", "default", "via", gateway)
        lab.far.ip("neigh", "add", "10.60.2.1", "lladdr", "02:00:00:00:00:01", "dev", DEVICE)
        into = f"mod_dl_src:02:00:00:00:00:01,mod_dl_dst:{lab.far.mac(DEVICE)},output:port"
        lab.switch.flow("overlay", f"priority=9,in_port=gre0,actions={into}")
        lab.switch.flow("overlay", "priority=9,in_port=port,ip,actions=output:gre0")
        lab.router.configure(f"""set interface ip address host-port 10.60.1.1/24
            create gre tunnel src {ROUTER} dst {SWITCH}
            set interface state gre0 up
            set interface ip address gre0 10.61.0.1/30
            ip route add 10.60.2.0/24 via gre0""")
        lab.wait_for_answers(lab.near, "10.60.2.2")
        ping_all(lab.near, "10.60.2.2", count=50)
        ping_all(lab.far, "10.60.1.2", count=50)
        fits = MTU_BYTES - PACKET_OVERHEAD_BYTES - 28
        ping_all(lab.near, "10.60.2.2", "-s", str(fits), "-M", "do")
        told = ping(lab.near, "10.60.2.2", "-s", str(fits + 1), "-M", "do", count=2)
        assert re.search(rf"mtu ?=? ?{MTU_BYTES - PACKET_OVERHEAD_BYTES}\b", told), told
        # The switch tells nobody what fits: its side sends segments that do.
        lab.far.ip("link", "set", DEVICE, "mtu", str(fits + 28))
        lab.transfer(lab.near, lab.far, "10.60.2.2")
        lab.transfer(lab.far, lab.near, "10.60.1.2")
        lab.router.check_sound()


@dataclass(frozen=True)
class Overlay:
    """A tunnel for frames, as both ends name it."""

    kind: str
    options: tuple[str, ...]
    #: The router's command, and its interface.
    command: str
    interface: str
    #: The node that takes its headers off.
    node: str


OVERLAYS = [
    Overlay(
        "geneve",
        ("options:key=100",),
        f"create geneve tunnel local {ROUTER} remote {SWITCH} vni 100",
        "geneve_tunnel0",
        "geneve4-input",
    ),
    Overlay(
        "erspan",
        ("options:key=7", "options:erspan_ver=1", "options:erspan_idx=1"),
        f"create gre tunnel src {ROUTER} dst {SWITCH} erspan 7",
        "gre0",
        "gre4-input",
    ),
    Overlay(
        "erspan",
        ("options:key=7", "options:erspan_ver=2", "options:erspan_dir=1", "options:erspan_hwid=4"),
        f"create gre tunnel src {ROUTER} dst {SWITCH} erspan 7 type-iii",
        "gre0",
        "gre4-input",
    ),
]


@contextmanager
def overlaid(overlay: Overlay) -> Iterator[Tunnelled]:
    """Hosts of one subnet, on a bridge of the router and on one of the switch, joined by a tunnel."""
    with tunnelled("10.50.0.1/24", "10.50.0.2/24", list(overlay.options), overlay.kind) as lab:
        lab.router.configure(f"""{overlay.command}
            set interface state {overlay.interface} up
            create bridge-domain 1
            set interface l2 bridge host-port 1
            set interface l2 bridge {overlay.interface} 1""")
        for host in (lab.near, lab.far):
            host.ip("link", "set", DEVICE, "mtu", "1400")
        lab.wait_for_answers(lab.near, "10.50.0.2")
        yield lab
        lab.router.check_sound()


@pytest.mark.parametrize("overlay", OVERLAYS, ids=["geneve", "erspan type II", "erspan type III"])
def test_frames_cross_an_overlay_both_ways(overlay: Overlay) -> None:
    with overlaid(overlay) as lab:
        before = lab.router.errors()
        ping_all(lab.near, "10.50.0.2", count=50)
        ping_all(lab.far, "10.50.0.1", count=50)
        ping_all(lab.near, "10.50.0.2", "-s", "1372", "-M", "do")
        lab.transfer(lab.near, lab.far, "10.50.0.2")
        lab.transfer(lab.far, lab.near, "10.50.0.1")
        assert lab.router.counters(overlay.interface)["rx_packets"] > 100
        assert not [node for node, _ in lab.router.counted_since(before) if node == overlay.node]


def test_options_of_geneve_are_passed_over_and_critical_ones_are_not() -> None:
    """The switch adds an option to each frame: first one that may be passed over, then one that may not."""
    with overlaid(OVERLAYS[0]) as lab:
        lab.switch.geneve_options(
            "overlay",
            "{class=0x0102,type=3,len=4}->tun_metadata0,{class=0x0102,type=0x83,len=4}->tun_metadata1",
        )
        for option, passes in (("tun_metadata0", True), ("tun_metadata1", False)):
            before = lab.router.errors()
            actions = f"set_field:0x11223344->{option},output:gre0"
            lab.switch.flow("overlay", f"priority=9,in_port=port,actions={actions}")
            if passes:
                ping_all(lab.near, "10.50.0.2", count=20)
            else:
                ping(lab.near, "10.50.0.2", count=3)
                lab.router.wait_for_error(before, "geneve4-input", "critical-option")
