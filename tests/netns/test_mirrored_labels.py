"""Labels by FPM, as FRR's zebra sends those of LDP and BGP: routes of labels, and labels of routes.

The kernel of this machine has no MPLS, so that zebra would send none: the test sends what zebra sends.
"""

from __future__ import annotations

import re
import struct
import sys
from collections.abc import Iterator
from functools import partial
from ipaddress import IPv4Address, IPv4Network

import pytest

from peers.capture import Capture
from peers.mirrored import Mirrored, mirrored_network
from peers.namespace import Namespace
from peers.processes import wait_until

#: The TCP port of zebra's FPM.
PORT = 2620
AF_INET, AF_MPLS = 2, 28
RTM_NEWROUTE, RTM_DELROUTE = 24, 25
RTA_DST, RTA_OIF, RTA_GATEWAY, RTA_VIA, RTA_NEWDST = 1, 4, 5, 18, 19
RTA_ENCAP_TYPE, RTA_ENCAP = 21, 22
RTPROT_ZEBRA, RT_TABLE_MAIN = 11, 254

#: Sends what it reads to the router's FPM port, and stays connected.
ZEBRA = f"""
import socket, sys, time
link = socket.create_connection(("127.0.0.1", {PORT}))
for line in sys.stdin:
    link.sendall(bytes.fromhex(line))
time.sleep(3)
"""

#: Sends labelled packets.
SEND = """
import sys
from scapy.all import IP, UDP, Ether, Raw, sendp
from scapy.contrib.mpls import MPLS
to, labels = sys.argv[1], [int(label) for label in sys.argv[2:]]
front = Ether(dst=to)
for label in labels:
    front = front / MPLS(label=label, s=int(label == labels[-1]), ttl=64)
packet = IP(src="10.0.1.2", dst="10.0.2.2", ttl=9) / UDP(dport=12) / Raw(b"x" * 20)
sendp(front / packet, iface="h0", count=5, verbose=0)
"""


def attribute(number: int, value: bytes) -> bytes:
    """A netlink attribute, padded."""
    return struct.pack("=HH", len(value) + 4, number) + value + bytes(-len(value) % 4)


def stack(*labels: int) -> bytes:
    """Label stack entries."""
    return b"".join(
        struct.pack(">I", label << 12 | (0x100 if place + 1 == len(labels) else 0))
        for place, label in enumerate(labels)
    )


def message(kind: int, family: int, length: int, attributes: bytes) -> str:
    """A frame of FPM with one route."""
    route = struct.pack("=BBBBBBBBI", family, length, 0, 0, RT_TABLE_MAIN, RTPROT_ZEBRA, 0, 1, 0)
    route += attributes
    netlink = struct.pack("=IHHII", len(route) + 16, kind, 0x501, 0, 0) + route
    return (struct.pack(">BBH", 1, 1, len(netlink) + 4) + netlink).hex()


def via(address: str) -> bytes:
    """A next hop of a label."""
    return attribute(RTA_VIA, struct.pack("=H", AF_INET) + IPv4Address(address).packed)


def label_route(kind: int, label: int, hop: bytes) -> str:
    """A route of a label."""
    return message(kind, AF_MPLS, 20, attribute(RTA_DST, stack(label)) + hop)


def labelled_route(prefix: str, gateway: str, link: int, *labels: int) -> str:
    """A route that puts labels on packets."""
    network = IPv4Network(prefix)
    encap = attribute(RTA_ENCAP_TYPE, struct.pack("=H", 1))
    encap += attribute(RTA_ENCAP, attribute(1, stack(*labels)))
    hop = attribute(RTA_GATEWAY, IPv4Address(gateway).packed) + attribute(RTA_OIF, struct.pack("=I", link))
    destination = attribute(RTA_DST, network.network_address.packed)
    return message(RTM_NEWROUTE, AF_INET, network.prefixlen, destination + hop + encap)


def is_answered(host: Namespace, address: str) -> bool:
    """Does an address answer a host?"""
    return host.run("ping", "-c1", "-W1", address, check=False).returncode == 0


@pytest.fixture(scope="module")
def mirrored() -> Iterator[Mirrored]:
    """A router with twins, which listens to a daemon and takes labelled packets."""
    with mirrored_network() as made:
        for net in (1, 2):
            made.twins.ip("addr", "add", f"10.0.{net}.1/24", "dev", f"e{net - 1}")
        made.router.configure(
            f"""lcp fpm listen netns {made.twins.name}
            mpls table add 0
            set interface mpls tap0 enable"""
        )
        for host, net in ((made.left, 1), (made.right, 2)):
            wait_until(
                f"10.0.{net}.1 answers",
                partial(is_answered, host, f"10.0.{net}.1"),
            )
        yield made


def test_labels_of_a_daemon_are_switched_pushed_and_withdrawn(mirrored: Mirrored) -> None:
    twins, router = mirrored.twins, mirrored.router
    link = int(twins.ip_json("link", "show", "e1")[0]["ifindex"])
    out = attribute(RTA_OIF, struct.pack("=I", link))
    swap = via("10.0.2.2") + out + attribute(RTA_NEWDST, stack(17, 18))
    frames = [
        label_route(RTM_NEWROUTE, 100, swap),
        label_route(RTM_NEWROUTE, 101, via("10.0.2.2") + out),
        label_route(RTM_NEWROUTE, 102, via("10.0.2.2") + out),
        label_route(RTM_DELROUTE, 102, via("10.0.2.2") + out),
        labelled_route("192.0.2.0/24", "10.0.2.2", link, 300, 400),
    ]
    twins.run(sys.executable, "-c", ZEBRA, stdin="\n".join(frames) + "\n")
    labelled = "out-labels 300 400"
    wait_until("the route has its labels", lambda: labelled in mirrored.route("192.0.2.0/24"))
    rows = {(row["label"], row["bottom"]): row for row in router.json("show mpls fib")}
    assert set(rows) == {(100, "eos"), (100, "non-eos"), (101, "eos"), (101, "non-eos")}, rows
    assert "out-labels 17 18" in rows[100, "eos"]["paths"][0]
    assert rows[100, "eos"]["source"] == "dynamic"
    mac = router.json("show interface tap0")["interfaces"][0]["mac"]
    with Capture(mirrored.right, "h0", "udp port 12 or mpls") as capture:
        mirrored.left.run(sys.executable, "-c", SEND, mac, "100")
        mirrored.left.run(sys.executable, "-c", SEND, mac, "101")
        mirrored.left.run("ping", "-c", "3", "-i", "0.2", "-W", "1", "192.0.2.9", check=False)
        wait_until("all came", lambda: len(capture.lines()) >= 13)
    text = "\n".join(capture.lines("-e", "-v"))
    assert len(re.findall(r"label 17, tc 0, ttl 63\).*?label 18, tc 0, \[S\], ttl 63", text)) == 5, text
    assert len(re.findall(r"\(0x0800\).* ttl 9,", text)) == 5, text
    assert len(re.findall(r"label 300, tc 0, ttl 63\).*?label 400, tc 0, \[S\], ttl 63", text)) == 3, text
