"""The walk-through of `docs/guide/label-router.md`: an article's configuration, verbatim, with its labels."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from peers.capture import Capture
from peers.namespace import Namespace
from peers.network import namespaces
from peers.processes import wait_until
from peers.router import Router

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guide" / "label-router.md"
#: The namespaces of the guide, in its words.
NAMES = ("router", "tester-a", "tester-b")

#: Sends labelled UDP packets, and IPv4 packets without labels.
SEND = """
import sys
from scapy.all import IP, UDP, Ether, Raw, sendp
from scapy.contrib.mpls import MPLS
to, label, destination = sys.argv[1], int(sys.argv[2]), sys.argv[3]
packet = IP(src="16.0.0.1", dst=destination, ttl=32) / UDP(sport=1025, dport=12) / Raw(b"x" * 20)
front = MPLS(label=label, s=1, ttl=255) if label else None
sendp(Ether(dst=to) / (front / packet if front else packet), iface="eth0", count=10, verbose=False)
"""


def blocks(kind: str) -> list[str]:
    """The fenced blocks of a kind, in order."""
    return re.findall(rf"^```{kind}\n(.*?)^```$", GUIDE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def lab() -> Iterator[tuple[list[Namespace], Router]]:
    """What the guide builds, with the article's configuration."""
    with namespaces("router", "testera", "testerb") as made:
        script = re.sub(r"^for n in .*ip netns add.*\n", "", blocks("sh")[0], flags=re.MULTILINE)
        for name, namespace in zip(NAMES, made, strict=True):
            script = re.sub(rf"\bnetns {name}\b", f"netns {namespace.name}", script)
            script = re.sub(rf"\bnetns exec {name}\b", f"netns exec {namespace.name}", script)
            script = re.sub(rf"\bip -n {name}\b", f"ip -n {namespace.name}", script)
        made[0].run("bash", "-euc", script)
        with Router(made[0]) as router:
            router.configure(blocks("quiver ports")[0])
            router.configure(blocks("quiver article")[0])
            router.wait_for_link("e0", "e1")
            yield made, router


def seen(lab: tuple[list[Namespace], Router], label: int, destination: str) -> list[str]:
    """What tester B sees when tester A sends ten packets."""
    made, router = lab
    mac = re.search(r"Ethernet address (\S+)", router.ctl("show hardware-interfaces e0"))
    assert mac
    with Capture(made[2], "eth0", "udp or mpls") as capture:
        made[1].run(sys.executable, "-c", SEND, mac[1], str(label), destination)
        wait_until("ten packets", lambda: len(capture.lines("-e")) >= 10)
    return capture.lines("-e", "-v")


def test_the_articles_lines_forward_and_take_labels_off(lab: tuple[list[Namespace], Router]) -> None:
    plain = seen(lab, 0, "48.0.0.1")
    assert len(plain) == 10, plain
    assert all("ttl 31" in line and "IPv4 (0x0800)" in line for line in plain), plain
    popped = seen(lab, 16, "48.0.0.1")
    assert len(popped) == 10, popped
    assert all("ttl 32" in line and "IPv4 (0x0800)" in line for line in popped), popped
    assert all("50:7c:6f:20:30:71" in line for line in popped), popped
    told = lab[1].json("show mpls fib 16")[0]
    assert (told["bottom"], told["paths"]) == ("eos", ["via 100.64.2.2 e1"]), told


def test_a_label_that_is_named_is_sent(lab: tuple[list[Namespace], Router]) -> None:
    lab[1].configure(blocks("quiver swap")[0])
    swapped = seen(lab, 16, "48.0.0.1")
    assert all("MPLS (label 17, " in line and "ttl 254" in line for line in swapped), swapped
    # The configuration comes back as it was typed, in other words.
    running = lab[1].ctl("show running-config")
    for line in ("mpls table add 0", "set interface mpls e0 enable", "out-labels 17"):
        assert line in running
