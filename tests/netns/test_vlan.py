"""Tagged frames of full size over veth and tap; made by hand, for this kernel has no VLAN device."""

from __future__ import annotations

import pytest
from scapy.layers.inet import ICMP, IP
from scapy.layers.l2 import Dot1AD, Dot1Q, Ether
from scapy.packet import Packet, Raw

from peers.network import DEVICE, attach, namespaces
from peers.processes import wait_until
from peers.router import Router

MTU_BYTES = 1500
#: The host's address; nobody is asked for it.
HOST_MAC = "02:00:00:00:00:a1"

TAGS = {
    "dot1q": ("dot1q 100 exact-match", [Dot1Q(vlan=100)]),
    "dot1ad": ("dot1ad 100 exact-match", [Dot1AD(vlan=100)]),
    "QinQ": ("dot1ad 100 inner-dot1q 200 exact-match", [Dot1AD(vlan=100), Dot1Q(vlan=200)]),
    "priority": ("untagged", [Dot1Q(vlan=0, prio=5)]),
}


def request(router_mac: str, tags: list[Packet], payload_bytes: int) -> bytes:
    """An echo request with these tags."""
    frame = Ether(src=HOST_MAC, dst=router_mac)
    for tag in tags:
        frame = frame / tag.copy()
    return bytes(frame / IP(src="10.1.0.2", dst="10.1.0.1") / ICMP(id=7) / Raw(b"q" * payload_bytes))


@pytest.mark.parametrize("kind", ["veth", "tap"])
@pytest.mark.parametrize("name", TAGS)
def test_tagged_frames_of_full_size_are_answered(kind: str, name: str) -> None:
    takes, tags = TAGS[name]
    with namespaces("router", "host") as (own, host), Router(own) as router:
        # The kernel's own ends count one customer tag beyond the MTU and no more.
        port = attach(router, host, 1, kind, MTU_BYTES + 8).interface
        router.configure(
            f"set interface mtu packet {MTU_BYTES} {port}\nset interface state {port} up\n"
            f"create sub-interfaces {port} 5 {takes}\nset interface state {port}.5 up\n"
            f"set interface ip address {port}.5 10.1.0.1/24\n"
            f"ip neighbor {port}.5 10.1.0.2 {HOST_MAC} static"
        )
        router.wait_for_link(port)
        host.sysctl(f"net.ipv6.conf.{DEVICE}.disable_ipv6", 1)
        host.ip("link", "set", DEVICE, "mtu", str(MTU_BYTES + 8))
        router.ctl("clear interfaces")
        mac = router.interface(f"{port}.5")["mac"]
        with host.raw_socket(DEVICE) as raw:
            for payload_bytes in (18, MTU_BYTES - 28):
                raw.send(request(mac, tags, payload_bytes))
            answers = (bytes(IP(src="10.1.0.1", dst="10.1.0.2"))[12:20], b"q" * (MTU_BYTES - 28))
            frames: list[bytes] = []

            def have_both_come() -> bool:
                frames.extend(frame for frame in raw.receive_all() if answers[0] in frame)
                return len(frames) == 2

            wait_until("both are answered", have_both_come)
        # The kernel takes the outer tag off what a raw socket reads; the second one stays.
        assert [answers[1] in frame for frame in frames] == [False, True]
        assert all((b"\x81\x00\x00\xc8\x08\x00" in frame[:30]) == (name == "QinQ") for frame in frames)
        counters = router.counters(f"{port}.5")
        assert counters["rx_packets"] == 2
        assert counters["rx_bytes"] == sum(len(request(mac, tags, n)) for n in (18, MTU_BYTES - 28))
