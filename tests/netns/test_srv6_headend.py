"""Quiver as headend of SRv6 policies, Linux as endpoint (seg6local), and HMAC both ways.

```
 host1 ─── quiver ─── host2 (Linux: End, End.X, End.DX2, DX4, DX6, DT6) ─── customer
```
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from peers.capture import Capture
from peers.namespace import Namespace, veth
from peers.network import DEVICE, MTU_BYTES, Network, attach, namespaces, network, ping_all, reach
from peers.processes import need

#: The customer, behind Linux.
CUSTOMER = {4: "10.9.0.2", 6: "2001:db8:9::2"}
#: Linux's port to it.
PORT = "cust0"
#: The secret of the keys.
SECRET = "correct-horse"


@dataclass(frozen=True)
class Provider:
    """The network with the customer behind the second host."""

    net: Network
    customer: Namespace

    @property
    def linux(self) -> Namespace:
        """The Linux endpoint."""
        return self.net.right.host

    def sid(self, last: str, *action: str, dev: str = PORT) -> None:
        """A local SID of Linux."""
        self.linux.ip(
            *["-6", "route", "replace", f"fc00:0:2::{last}/128"],
            *["encap", "seg6local", "action", *action, "dev", dev],
        )


def enable(host: Namespace, *devices: str) -> None:
    """Let Linux route, and follow segments."""
    for key in ("net.ipv4.ip_forward", "net.ipv6.conf.all.forwarding"):
        host.sysctl(key, 1)
    for device in ("all", "default", *devices):
        host.sysctl(f"net.ipv6.conf.{device}.seg6_enabled", 1)
        host.sysctl(f"net.ipv4.conf.{device}.rp_filter", 0)


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    """Routes there and back, and Linux's local SIDs."""
    with network() as net, namespaces("customer") as [customer]:
        linux = net.right.host
        veth(linux, PORT, customer, DEVICE, MTU_BYTES)
        enable(linux, DEVICE, PORT)
        enable(customer, DEVICE)
        linux.ip("addr", "add", "10.9.0.1/24", "dev", PORT)
        linux.ip("addr", "add", "2001:db8:9::1/64", "dev", PORT, "nodad")
        customer.ip("addr", "add", "10.9.0.2/24", "dev", DEVICE)
        customer.ip("addr", "add", "2001:db8:9::2/64", "dev", DEVICE, "nodad")
        customer.ip("route", "add", "default", "via", "10.9.0.1")
        customer.ip("-6", "route", "add", "default", "via", "2001:db8:9::1")
        made = Provider(net, customer)
        made.sid("e", "End")
        made.sid("ea", "End.X", "nh6", CUSTOMER[6])
        made.sid("d4", "End.DX4", "nh4", CUSTOMER[4])
        made.sid("d6", "End.DX6", "nh6", CUSTOMER[6])
        made.sid("d7", "End.DT6", "table", "254")
        made.sid("d2", "End.DX2", "oif", PORT)
        linux.ip("-6", "route", "add", "fc00:0:9::/48", "via", CUSTOMER[6])
        customer.ip(
            *["-6", "route", "add", "fc00:0:9::d6/128"],
            *["encap", "seg6local", "action", "End.DT6", "table", "255", "dev", DEVICE],
        )
        net.router.configure(f"""set sr encaps source addr {net.right.router_ip6}
            ip route add fc00:0:2::/48 via {net.right.ip6} {net.right.interface}
            ip route add fc00:0:9::/48 via {net.right.ip6} {net.right.interface}""")
        net.meet()
        yield made


@contextmanager
def steered(provider: Provider, family: int, policy: str) -> Iterator[None]:
    """The customer's address goes by a policy meanwhile."""
    prefix = f"{CUSTOMER[family]}/{32 if family == 4 else 128}"
    router = provider.net.router
    router.configure(f"""sr policy add bsid fc00:0:1::b {policy}
        sr steer l3 {prefix} via bsid fc00:0:1::b""")
    try:
        yield
    finally:
        router.configure(f"""sr steer del l3 {prefix} via bsid fc00:0:1::b
            sr policy del bsid fc00:0:1::b""")


#: Family, segments, what the policy does.
PATHS = {
    "End, End.DX4": (4, "next fc00:0:2::e next fc00:0:2::d4 encap"),
    "End, End.DX4, reduced": (4, "next fc00:0:2::e next fc00:0:2::d4 encap.red"),
    "End.DX4 alone": (4, "next fc00:0:2::d4 encap"),
    "End.DX4 alone, reduced": (4, "next fc00:0:2::d4 encap.red"),
    "End, End.DX6": (6, "next fc00:0:2::e next fc00:0:2::d6 encap"),
    "End, End.DX6, reduced": (6, "next fc00:0:2::e next fc00:0:2::d6 encap.red"),
    "End.DT6 alone": (6, "next fc00:0:2::d7 encap"),
    "End.DT6 alone, reduced": (6, "next fc00:0:2::d7 encap.red"),
    "End.X, End.DT6 at the customer": (6, "next fc00:0:2::ea next fc00:0:9::d6 encap"),
    "End.X, End.DT6, reduced": (6, "next fc00:0:2::ea next fc00:0:9::d6 encap.red"),
    "End, inserted": (6, "next fc00:0:2::e insert"),
    "End, inserted, reduced": (6, "next fc00:0:2::e insert.red"),
    "End, End.X, inserted": (6, "next fc00:0:2::e next fc00:0:2::ea insert"),
}


@pytest.mark.parametrize("path", PATHS)
def test_linux_follows_the_segments(provider: Provider, path: str) -> None:
    """Pings cross, and the policy counts them."""
    family, policy = PATHS[path]
    host, router = provider.net.left.host, provider.net.router
    with steered(provider, family, policy):
        reach(host, CUSTOMER[family])
        before = router.json("show sr policies")["policies"][0]["packets"]
        ping_all(host, CUSTOMER[family], "-s", "1200", count=20)
        after = router.json("show sr policies")["policies"][0]["packets"]
        assert after - before >= 20


@pytest.mark.parametrize("family", [4, 6], ids=["IPv4", "IPv6"])
def test_tcp_finds_the_room_that_segments_leave(provider: Provider, family: int) -> None:
    """Hosts hear of the smaller MTU, and a bulk transfer crosses."""
    need("iperf3")
    last = "d4" if family == 4 else "d6"
    with steered(provider, family, f"next fc00:0:2::e next fc00:0:2::{last} encap"):
        host = provider.net.left.host
        reach(host, CUSTOMER[family])
        server = provider.customer.start("iperf3", "-s", "-1", "--forceflush", "-B", CUSTOMER[family])
        try:
            server.wait_for_text("listening")
            said = host.run("iperf3", "-c", CUSTOMER[family], "-t", "2", "-J", check=False)
            result = json.loads(said.stdout)
            assert "error" not in result, result.get("error")
            assert result["end"]["sum_received"]["bytes"] > 1_000_000, result["end"]
        finally:
            server.stop()


def test_a_binding_sid_leads_on_by_its_policy(provider: Provider) -> None:
    """Linux sends to the binding SID; what it encapsulated arrives behind the policy's segments."""
    net = provider.net
    net.left.host.sysctl("net.ipv6.conf.all.seg6_enabled", 1)
    for behavior in ("encap", "encap.red", "insert", "insert.red"):
        # The first segment ends what encapsulation put around; what was inserted ends there, too.
        first = "d7" if behavior.startswith("encap") else "e"
        net.router.ctl(f"sr policy add bsid fc00:0:1::b6 next fc00:0:2::{first} {behavior}")
        net.left.host.ip(
            *["-6", "route", "replace", f"{CUSTOMER[6]}/128", "encap", "seg6", "mode", "encap"],
            *["segs", "fc00:0:1::b6,fc00:0:2::d6", "dev", DEVICE],
        )
        net.left.host.ip("-6", "route", "replace", "fc00:0:1::/48", "via", net.left.router_ip6)
        try:
            reach(net.left.host, CUSTOMER[6])
            ping_all(net.left.host, CUSTOMER[6], count=10)
        finally:
            net.left.host.ip("-6", "route", "del", f"{CUSTOMER[6]}/128")
            net.router.ctl("sr policy del bsid fc00:0:1::b6")


def test_frames_cross_to_linux_end_dx2(provider: Provider) -> None:
    """Frames of a steered port leave Linux's port as they came."""
    router = provider.net.router
    with namespaces("wire") as [wire]:
        side = attach(router, wire, 7, "veth")
        router.configure(f"""set interface state {side.interface} up
            sr policy add bsid fc00:0:1::b next fc00:0:2::e next fc00:0:2::d2 encap
            sr steer l2 {side.interface} via bsid fc00:0:1::b""")
        router.wait_for_link(side.interface)
        try:
            frame = bytes.fromhex("02000000000a02000000000b88b5") + b"a frame as it came" + bytes(60)
            with provider.customer.raw_socket(DEVICE) as there, wire.raw_socket(DEVICE) as here:
                for _ in range(50):
                    here.send(frame)
                    seen = there.receive_all()
                    if any(got.startswith(frame) for got in seen):
                        break
                else:
                    raise AssertionError(f"{router.errors()}")
        finally:
            router.configure(f"""sr steer del l2 {side.interface}
                sr policy del bsid fc00:0:1::b
                delete host-interface name port7""")


def set_key(host: Namespace, number: int, algorithm: str) -> None:
    """Give Linux a key; `ip` asks for the secret where there is no terminal, too."""
    host.run("sh", "-c", f"echo {SECRET} | setsid ip sr hmac set {number} {algorithm}")


@pytest.mark.parametrize("algorithm", ["sha1", "sha256"])
def test_linux_verifies_what_quiver_signs(provider: Provider, algorithm: str) -> None:
    """With the right key pings cross where an HMAC must be there; with a wrong one none does."""
    router, host = provider.net.router, provider.net.left.host
    router.ctl(f"sr hmac key 7 algo {algorithm} secret {SECRET} linux")
    set_key(provider.linux, 7, algorithm)
    provider.linux.sysctl(f"net.ipv6.conf.{DEVICE}.seg6_require_hmac", 1)
    try:
        with steered(provider, 6, "next fc00:0:2::e next fc00:0:2::d6 encap hmac 7"):
            reach(host, CUSTOMER[6])
            ping_all(host, CUSTOMER[6], count=10)
            router.ctl(f"sr hmac key 7 algo {algorithm} secret wrong linux")
            lost = host.run("ping", "-c", "3", "-i", "0.1", "-W", "0.5", CUSTOMER[6], check=False).stdout
            assert " 0 received" in lost, lost
        with steered(provider, 6, "next fc00:0:2::e next fc00:0:2::d6 encap"):
            lost = host.run("ping", "-c", "3", "-i", "0.1", "-W", "0.5", CUSTOMER[6], check=False).stdout
            assert " 0 received" in lost, lost
    finally:
        provider.linux.sysctl(f"net.ipv6.conf.{DEVICE}.seg6_require_hmac", 0)
        router.ctl("sr hmac key del 7")


@pytest.mark.parametrize("algorithm", ["sha1", "sha256"])
def test_quiver_verifies_what_linux_signs(provider: Provider, algorithm: str) -> None:
    """Linux signs a path through Quiver's End; Quiver lets it pass with the right key alone."""
    net = provider.net
    router, host = net.router, net.left.host
    host.sysctl("net.ipv6.conf.all.seg6_enabled", 1)
    for signs_or_checks in (host, provider.linux):
        set_key(signs_or_checks, 8, algorithm)
    router.configure(f"""sr localsid address fc00:0:1::e behavior end
        sr hmac key 8 algo {algorithm} secret {SECRET} linux
        set sr hmac-policy {net.left.interface} required""")
    host.ip("-6", "route", "replace", "fc00:0:1::/48", "via", net.left.router_ip6)
    host.ip(
        *["-6", "route", "replace", f"{CUSTOMER[6]}/128", "encap", "seg6", "mode", "encap"],
        *["segs", "fc00:0:1::e,fc00:0:2::d6", "hmac", "8", "dev", DEVICE],
    )
    try:
        reach(host, CUSTOMER[6])
        ping_all(host, CUSTOMER[6], count=10)
        assert router.errors()["sr-hmac-input", "hmac-verified"] >= 10
        router.ctl(f"sr hmac key 8 algo {algorithm} secret wrong linux")
        lost = host.run("ping", "-c", "3", "-i", "0.1", "-W", "0.5", CUSTOMER[6], check=False).stdout
        assert " 0 received" in lost, lost
        assert router.errors()["sr-hmac-input", "hmac-wrong"] > 0
        router.ctl(f"set sr hmac-policy {net.left.interface} ignore")
        ping_all(host, CUSTOMER[6], count=5)
    finally:
        host.ip("-6", "route", "del", f"{CUSTOMER[6]}/128")
        router.configure(f"""set sr hmac-policy {net.left.interface} ignore
            sr hmac key del 8
            sr localsid del address fc00:0:1::e""")


def test_lists_change_under_traffic_without_a_loss(provider: Provider) -> None:
    """A flood of pings while lists come, go and change their weight: none is lost."""
    router, host = provider.net.router, provider.net.left.host
    with steered(provider, 6, "next fc00:0:2::d6 encap"):
        reach(host, CUSTOMER[6])
        pings = host.start("ping", "-n", "-i", "0.002", "-c", "1500", "-q", CUSTOMER[6])
        for _ in range(40):
            router.configure("""sr policy mod bsid fc00:0:1::b add sl next fc00:0:2::e next fc00:0:2::d7
                sr policy mod bsid fc00:0:1::b mod sl index 0 weight 3
                set sr encaps hop-limit 50
                sr policy mod bsid fc00:0:1::b del sl index 1
                set sr encaps hop-limit 64""")
        pings.wait()
        assert " 0% packet loss" in pings.text(), pings.text()


def test_what_leaves_is_what_wireshark_reads(provider: Provider) -> None:
    """Nothing that Quiver sends is malformed to tshark."""
    host = provider.net.left.host
    with steered(provider, 6, "next fc00:0:2::e next fc00:0:2::d6 encap"):
        reach(host, CUSTOMER[6])
        with Capture(provider.linux, DEVICE, "ip6") as capture:
            ping_all(host, CUSTOMER[6], count=5)
        capture.check(5)
