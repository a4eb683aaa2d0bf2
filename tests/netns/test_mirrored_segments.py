"""Routes of Linux with SRv6, and local SIDs of Linux, become the router's."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from contextlib import suppress

import pytest

from peers.mirrored import Mirrored, give_addresses, mirrored_network
from peers.namespace import Namespace
from peers.network import ping, ping_all, reach
from peers.processes import wait_until

#: Behind the right host, by segments.
BEHIND = "2001:db8:a::1"
#: IPv6 (linux/if_ether.h).
ETH_P_IPV6 = 0x86DD
#: Of linux/rtnetlink.h and linux/netlink.h.
RTM_NEWROUTE, RTM_DELROUTE, RTM_GETROUTE, NLM_F_DUMP = 24, 25, 26, 0x301


def enable(host: Namespace, *devices: str) -> None:
    """Let Linux take packets with segments."""
    for device in ("all", *devices):
        host.sysctl(f"net.ipv6.conf.{device}.seg6_enabled", 1)


@pytest.fixture
def mirrored() -> Iterator[Mirrored]:
    """A router with twins, and a right host that ends SRv6 tunnels with the SID fc00:2::6."""
    with mirrored_network() as made:
        give_addresses(made)
        for host in (made.left, made.right):
            enable(host, "h0", "lo")
            host.ip("link", "set", "lo", "up")
        made.right.sysctl("net.ipv6.conf.all.forwarding", 1)
        enable(made.twins, "e0", "e1")
        made.right.ip("addr", "add", f"{BEHIND}/128", "dev", "lo")
        actions = {
            "fc00:2::1": ("End",),
            "fc00:2::6": ("End.DT6", "table", "255"),
            "fc00:2::7": ("End.DT6", "table", "254"),
        }
        for sid, action in actions.items():
            made.right.ip(
                "-6", "route", "add", f"{sid}/128", "encap", "seg6local", "action", *action, "dev", "h0"
            )
        made.router.ctl("set sr encaps source addr 2001:db8:2::1")
        made.twins.ip("-6", "route", "add", "fc00:2::/64", "via", "2001:db8:2::2", "dev", "e1")
        yield made


def segments(mirrored: Mirrored) -> set[tuple[str, str]]:
    """The behaviour and segments of each SR policy."""
    shown = mirrored.router.json("show sr policies")
    behaviors = {row["bsid"]: row["behavior"] for row in shown["policies"]}
    return {(behaviors[row["policy"]], " ".join(row["segments"])) for row in shown["lists"]}


def local_sids(mirrored: Mirrored) -> dict[str, str]:
    """What each local SID does."""
    return {row["sid"]: row["behavior"] for row in mirrored.router.json("show sr localsids")}


def sees_inserted(mirrored: Mirrored, sid: str) -> None:
    """Packets to the host behind come to a SID, with the host as the last segment (RFC 8754)."""
    segments = [socket.inet_pton(socket.AF_INET6, address) for address in (BEHIND, sid)]
    with mirrored.right.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_IPV6)) as sees:
        sees.settimeout(0.2)
        frames: list[bytes] = []

        def has_come() -> bool:
            ping(mirrored.left, BEHIND, "-W", "0.2", count=1)
            with suppress(TimeoutError):
                while True:
                    frames.append(sees.recv(2000))
            # Linux may have made the last segment the active one before the frame is read here. A
            # routing header of type 4 of two segments follows the IPv6 header.
            return any(
                frame[20] == 43 and frame[56] == 4 and frame[58] == 1 and frame[62:94] == b"".join(segments)
                for frame in frames
                if len(frame) >= 94
            )

        wait_until("a packet comes to the SID", has_come)


@pytest.mark.parametrize(
    ("mode", "behavior", "path"),
    [
        ("encap", "encap", "fc00:2::6"),
        ("encap", "encap", "fc00:2::1,fc00:2::6"),
        ("encap.red", "encap.red", "fc00:2::1,fc00:2::6"),
        ("inline", "insert", "fc00:2::1"),
    ],
)
def test_routes_with_segments_go_by_policies(mirrored: Mirrored, mode: str, behavior: str, path: str) -> None:
    ip = mirrored.twins.ip
    route = ("-6", "route", "replace", "2001:db8:a::/48", "encap", "seg6", "mode", mode, "segs", path)
    ip(*route, "dev", "e1")
    wait_until("the policy is there", lambda: segments(mirrored) == {(behavior, path.replace(",", " "))})
    if mode == "inline":
        # Linux's End gives nothing to its own host: what arrives there counts.
        sees_inserted(mirrored, "fc00:2::1")
    else:
        reach(mirrored.left, BEHIND)
        ping_all(mirrored.left, BEHIND)
    assert "sr policy" not in mirrored.router.ctl("show running-config"), "it is Linux's"
    (bsid,) = [row["bsid"] for row in mirrored.router.json("show sr policies")["policies"]]
    assert "routes of Linux" in mirrored.router.refused(f"sr policy del bsid {bsid}")
    # Another route by the same segments shares the policy; it goes with the last one.
    ip("-6", "route", "add", "2001:db8:b::/48", "encap", "seg6", "mode", mode, "segs", path, "dev", "e1")
    wait_until("it came", lambda: mirrored.router.answer("show ip6 fib 2001:db8:b::/48").code == 0)
    assert len(segments(mirrored)) == 1
    ip("-6", "route", "replace", "2001:db8:a::/48", "via", "2001:db8:2::2", "dev", "e1")
    wait_until(
        "it is a plain route",
        lambda: "via 2001:db8:2::2" in mirrored.router.ctl("show ip6 fib 2001:db8:a::/48"),
    )
    assert len(segments(mirrored)) == 1
    ip("-6", "route", "del", "2001:db8:b::/48")
    wait_until("the policy is gone", lambda: not segments(mirrored))
    ping_all(mirrored.left, BEHIND)


def test_ipv4_is_encapsulated_and_several_lists_share_flows(mirrored: Mirrored) -> None:
    encap = ("encap", "seg6", "mode", "encap", "segs")
    mirrored.twins.ip(
        *["route", "add", "203.0.113.0/24"],
        *["nexthop", *encap, "fc00:2::6", "dev", "e1", "weight", "3"],
        *["nexthop", *encap, "fc00:2::1,fc00:2::6", "dev", "e1"],
    )
    both = {("encap", "fc00:2::6"), ("encap", "fc00:2::1 fc00:2::6")}
    wait_until("both are there", lambda: segments(mirrored) == both)
    assert "weight 3" in mirrored.route("203.0.113.0/24")
    mirrored.twins.ip("route", "add", "198.51.100.0/24", "encap", "mpls", "100", "dev", "e1", check=False)
    mirrored.twins.ip("route", "del", "203.0.113.0/24")
    wait_until("both are gone", lambda: not segments(mirrored))


def test_a_list_without_a_source_is_refused_and_told() -> None:
    with mirrored_network() as mirrored:
        give_addresses(mirrored)
        mirrored.twins.ip(
            *["-6", "route", "add", "2001:db8:a::/48"],
            *["encap", "seg6", "mode", "encap", "segs", "fc00:2::6", "dev", "e1"],
        )
        wait_until("it is refused", lambda: mirrored.sync()["refused"] == 1)
        assert "source address" in mirrored.router.ctl("show lcp sync")
        assert not segments(mirrored)


#: What Linux's actions become. Interfaces: e0 is tap0, e1 is tap1.
ACTIONS = [
    ("fc00:1::1/128", "End", "end"),
    ("fc00:1::2/128", "End flavors psp", "end psp"),
    ("fc00:1:2::/48", "End flavors next-csid lblen 32 nflen 16", "un"),
    ("fc00:1::3/128", "End.X nh6 2001:db8:2::2", "end.x tap1 2001:db8:2::2"),
    ("fc00:1::4/128", "End.T table 254", "end.t 0"),
    ("fc00:1::5/128", "End.DX2 oif e1", "end.dx2 tap1"),
    ("fc00:1::6/128", "End.DX6 nh6 2001:db8:2::2", "end.dx6 tap1 2001:db8:2::2"),
    ("fc00:1::7/128", "End.DX4 nh4 10.0.2.2", "end.dx4 tap1 10.0.2.2"),
    ("fc00:1::8/128", "End.DT6 table 254", "end.dt6 0"),
]


def test_local_sids_of_linux_are_the_routers(mirrored: Mirrored) -> None:
    router, ip = mirrored.router, mirrored.twins.ip
    made = {}
    for sid, action, behavior in ACTIONS:
        words = ("encap", "seg6local", "action", *action.split(), "dev", "e0")
        done = mirrored.twins.run("ip", "-6", "route", "add", sid, *words, check=False)
        if done.returncode == 0:  # older tools do not know all flavours
            made[sid.removesuffix("/128")] = behavior
    assert len(made) >= len(ACTIONS) - 1, made
    wait_until("all are there", lambda: local_sids(mirrored) == made)
    assert "sr localsid" not in router.ctl("show running-config"), "they are Linux's"
    # Packets of a Linux head end.
    mirrored.left.ip("-6", "route", "add", "fc00:1::/32", "via", "2001:db8:1::1")
    for path in ("fc00:1::8", "fc00:1::1,fc00:1::8", "fc00:1::2,fc00:1::6", "fc00:1::3,fc00:2::6"):
        mirrored.left.ip(
            *["-6", "route", "replace", f"{BEHIND}/128"],
            *["encap", "seg6", "mode", "encap", "segs", path, "dev", "h0"],
        )
        if path.startswith("fc00:1::8") or path.endswith("fc00:1::8"):
            ip("-6", "route", "replace", "2001:db8:a::/48", "via", "2001:db8:2::2", "dev", "e1")
        reach(mirrored.left, BEHIND)
        ping_all(mirrored.left, BEHIND)
    for sid in made:
        ip("-6", "route", "del", sid)
    wait_until("all are gone", lambda: not local_sids(mirrored))


def test_a_binding_sid_of_linux_is_a_policy(mirrored: Mirrored) -> None:
    mirrored.twins.ip(
        *["-6", "route", "add", "fc00:1::b/128", "encap", "seg6local", "action", "End.B6.Encaps"],
        *["srh", "segs", "fc00:2::7", "dev", "e0"],
    )
    wait_until("it is there", lambda: segments(mirrored) == {("encap", "fc00:2::7")})
    mirrored.left.ip("-6", "route", "add", "fc00:1::/32", "via", "2001:db8:1::1")
    mirrored.left.ip(
        *["-6", "route", "add", f"{BEHIND}/128"],
        *["encap", "seg6", "mode", "encap", "segs", "fc00:1::b,fc00:2::6", "dev", "h0"],
    )
    reach(mirrored.left, BEHIND)
    ping_all(mirrored.left, BEHIND)
    mirrored.twins.ip("-6", "route", "del", "fc00:1::b/128")
    wait_until("it is gone", lambda: not segments(mirrored))


def route_message(host: Namespace, prefix: str) -> bytes:
    """The body of the message by which Linux reports an IPv6 route."""
    address, length = prefix.split("/")
    wanted = socket.inet_pton(socket.AF_INET6, address)
    with host.socket(socket.AF_NETLINK, socket.SOCK_RAW) as asks:
        asks.settimeout(20)
        asks.send(struct.pack("=IHHII", 28, RTM_GETROUTE, NLM_F_DUMP, 1, 0) + bytes([10]) + bytes(11))
        while True:
            data = asks.recv(1 << 16)
            while data:
                (size, kind) = struct.unpack_from("=IH", data)
                assert kind == RTM_NEWROUTE, "Linux has no such route"
                body, data = data[16:size], data[(size + 3) & ~3 :]
                if body[1] == int(length) and wanted in body:
                    return body


def test_segments_come_by_fpm(mirrored: Mirrored) -> None:
    """FRR 8.4 has no command for them without its test daemon: Linux says what zebra would send."""
    mirrored.router.ctl(f"lcp fpm listen netns {mirrored.twins.name}")
    ip = mirrored.left.ip
    ip(
        "-6",
        "route",
        "add",
        "2001:db8:a::/48",
        "encap",
        "seg6",
        "mode",
        "encap",
        "segs",
        "fc00:2::6",
        "dev",
        "h0",
    )
    ip(
        "-6",
        "route",
        "add",
        "fc00:1::8/128",
        "encap",
        "seg6local",
        "action",
        "End.DT6",
        "table",
        "254",
        "dev",
        "h0",
    )
    bodies = [route_message(mirrored.left, prefix) for prefix in ("2001:db8:a::/48", "fc00:1::8/128")]
    for prefix in ("2001:db8:a::/48", "fc00:1::8/128"):
        ip("-6", "route", "del", prefix)

    def frame(kind: int, body: bytes) -> bytes:
        message = struct.pack("=IHHII", 16 + len(body), kind, 0, 0, 0) + body
        return struct.pack("!BBH", 1, 1, 4 + len(message)) + message

    with mirrored.twins.socket(socket.AF_INET, socket.SOCK_STREAM) as zebra:
        zebra.connect(("127.0.0.1", 2620))
        zebra.sendall(b"".join(frame(RTM_NEWROUTE, body) for body in bodies))
        wait_until("the policy is there", lambda: segments(mirrored) == {("encap", "fc00:2::6")})
        wait_until("the SID is there", lambda: local_sids(mirrored) == {"fc00:1::8": "end.dt6 0"})
        assert "dynamic" in mirrored.router.ctl("show ip6 fib 2001:db8:a::/48")
        reach(mirrored.left, BEHIND)
        ping_all(mirrored.left, BEHIND)
        # Linux has the same SID: it stays when either lets go of it.
        mirrored.twins.ip(
            *["-6", "route", "add", "fc00:1::8/128"],
            *["encap", "seg6local", "action", "End.DT6", "table", "254", "dev", "e0"],
        )
        wait_until("Linux is read", lambda: mirrored.sync_of("kernel")["lag"] == 0)
        zebra.sendall(b"".join(frame(RTM_DELROUTE, body) for body in bodies))
        wait_until("the policy is gone", lambda: not segments(mirrored))
        assert local_sids(mirrored) == {"fc00:1::8": "end.dt6 0"}
        mirrored.twins.ip("-6", "route", "del", "fc00:1::8/128")
        wait_until("the SID is gone", lambda: not local_sids(mirrored))
