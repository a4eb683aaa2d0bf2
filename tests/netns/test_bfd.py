"""BFD with BIRD and FRR on Linux hosts: sessions come up, links are cut, keys are used, routes follow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from peers.network import DEVICE, Network, Side, network, ping_all, reach
from peers.processes import wait_until
from peers.routing_daemons import Bird, Frr

families = pytest.mark.parametrize("family", [4, 6], ids=["IPv4", "IPv6"])

#: The intervals on both sides, microseconds and milliseconds.
INTERVAL_US = 100_000
INTERVAL_MS = INTERVAL_US // 1000


@pytest.fixture
def net() -> Iterator[Network]:
    """A router and two hosts."""
    with network() as made:
        yield made


def words(side: Side, family: int) -> str:
    """A session over one hop, in the words of commands."""
    return (
        f"interface {side.interface} local-addr {side.router_address(family)} "
        f"peer-addr {side.address(family)}"
    )


def add(net: Network, side: Side, family: int, more: str = "") -> None:
    """Add a session with a host."""
    net.router.ctl(
        f"bfd udp session add {words(side, family)} desired-min-tx {INTERVAL_US} "
        f"required-min-rx {INTERVAL_US} detect-mult 3 {more}"
    )


def session(net: Network, peer: str, detail: bool = True) -> dict[str, Any]:
    """What the router says of a session."""
    rows = net.router.json("show bfd sessions verbose" if detail else "show bfd sessions")
    return next(dict(row) for row in rows if row["peer"] == peer)


def is_up(net: Network, peer: str) -> bool:
    """Are both ends of the session up, by the router's word?"""
    row = session(net, peer)
    return (row["state"], row["remote_state"]) == ("Up", "Up") and not row["is_polling"]


def wait_up(net: Network, peer: str) -> None:
    """Wait until the session with a peer is up."""
    wait_until(f"the BFD session with {peer} is up", lambda: is_up(net, peer))


def wait_timing(net: Network, peer: str, transmit_ms: float, detection_ms: float) -> None:
    """Wait until both ends have agreed on their intervals: the first packets are slow."""

    def is_so() -> bool:
        row = session(net, peer)
        return (row["transmit_interval_ms"], row["detection_time_ms"]) == (transmit_ms, detection_ms)

    wait_until(f"{transmit_ms} ms and {detection_ms} ms", is_so)


def wait_state(net: Network, peer: str, state: str) -> dict[str, Any]:
    """Wait until the session with a peer is in a state."""
    wait_until(f"the BFD session with {peer} is {state}", lambda: session(net, peer)["state"] == state)
    return session(net, peer)


def bird_config(side: Side, family: int, more: str = "", interval_ms: int = INTERVAL_MS) -> str:
    """BIRD's end of a session."""
    return f"""
        router id {side.ip4};
        protocol device {{}}
        protocol bfd {{
            interface "{DEVICE}" {{
                min rx interval {interval_ms} ms; min tx interval {interval_ms} ms;
                idle tx interval 1 s; multiplier 3; {more}
            }};
            neighbor {side.router_address(family)} dev "{DEVICE}";
        }}"""


def cut(side: Side) -> None:
    """Let the host hear and say nothing, while its link stays up."""
    chains = [
        f"chain {hook} {{ type filter hook {hook} priority 0; policy drop; }};"
        for hook in ("input", "output")
    ]
    side.host.run("nft", f"table inet cut {{ {' '.join(chains)} }}")


def mend(side: Side) -> None:
    """Let the host hear and speak again."""
    side.host.run("nft", "delete table inet cut")


@families
def test_a_session_with_bird_comes_up_and_ends_within_the_detection_time(net: Network, family: int) -> None:
    left = net.left
    peer = left.address(family)
    bird = Bird(left.host, bird_config(left, family))
    add(net, left, family)
    wait_up(net, peer)
    wait_until("BIRD says so", lambda: bird.bfd_states() == {left.router_address(family): "Up"})
    wait_timing(net, peer, INTERVAL_MS, 3 * INTERVAL_MS)
    assert session(net, peer)["remote_min_rx_ms"] == INTERVAL_MS
    cut(left)
    row = wait_state(net, peer, "Down")
    assert row["diagnostic"] == "control-detection-time-expired"
    assert row["went_down"] == 1
    mend(left)
    wait_up(net, peer)
    assert session(net, peer)["came_up"] == 2


def test_bird_may_be_slower_and_changes_its_interval_while_the_session_is_up(net: Network) -> None:
    left = net.left
    bird = Bird(left.host, bird_config(left, 4, interval_ms=250))
    add(net, left, 4)
    wait_up(net, left.ip4)
    wait_timing(net, left.ip4, 250, 750)
    net.router.ctl(
        f"bfd udp session mod {words(left, 4)} desired-min-tx 400000 required-min-rx 300000 detect-mult 5"
    )
    wait_until("the poll is over", lambda: is_up(net, left.ip4))
    wait_timing(net, left.ip4, 400, 900)
    assert session(net, left.ip4)["went_down"] == 0, "the session stayed up"
    assert "Up" in bird.bfd_states().values()


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("keyed-md5", "keyed md5"),
        ("meticulous-keyed-md5", "meticulous keyed md5"),
        ("keyed-sha1", "keyed sha1"),
        ("meticulous-keyed-sha1", "meticulous keyed sha1"),
    ],
)
def test_packets_are_signed_with_the_key_that_bird_has(net: Network, ours: str, theirs: str) -> None:
    left = net.left
    key = f'authentication {theirs}; password "fishcake" {{ id 7; }};'
    Bird(left.host, bird_config(left, 4, key))
    net.router.ctl(f"bfd key set conf-key-id 3 type {ours} secret {b'fishcake'.hex()}")
    net.router.ctl(f"bfd key set conf-key-id 4 type {ours} secret {b'codcake'.hex()}")
    before = net.router.errors()
    add(net, left, 4, "conf-key-id 4 bfd-key-id 7")
    net.router.wait_for_error(before, "bfd-input", "auth-digest", 2)
    assert session(net, left.ip4)["state"] == "Down", "nothing follows from what is not authentic"
    net.router.ctl(f"bfd udp session auth activate {words(left, 4)} conf-key-id 3 bfd-key-id 7")
    wait_up(net, left.ip4)
    told = net.router.ctl("show bfd keys") + net.router.ctl("show bfd sessions")
    assert b"fishcake".hex() not in told
    assert session(net, left.ip4, detail=False)["authentication"] == ours


@families
def test_a_session_with_frr_comes_up_and_both_ends_hear_that_it_is_taken_down(
    net: Network, family: int
) -> None:
    left = net.left
    peer, own = left.address(family), left.router_address(family)
    local = f" local-address {peer}" if family == 6 else ""
    frr = Frr(
        left.host,
        "bfdd",
        config=f"""bfd
        peer {own}{local} interface {DEVICE}
        receive-interval {INTERVAL_MS}
        transmit-interval {INTERVAL_MS}
        detect-multiplier 4""",
    )
    add(net, left, family)
    wait_up(net, peer)
    wait_until("FRR says so", lambda: frr.bfd_peers()[own]["status"] == "up")
    wait_timing(net, peer, INTERVAL_MS, 4 * INTERVAL_MS)
    told = frr.bfd_peers()[own]
    assert (told["remote-receive-interval"], told["remote-detect-multiplier"]) == (INTERVAL_MS, 3)
    net.router.ctl(f"bfd udp session set-flags admin down {words(left, family)}")
    wait_until("FRR hears it", lambda: frr.bfd_peers()[own]["status"] == "down")
    assert session(net, peer)["state"] == "AdminDown"
    net.router.ctl(f"bfd udp session set-flags admin up {words(left, family)}")
    wait_up(net, peer)
    frr.configure(f"bfd\npeer {own}{local} interface {DEVICE}\nshutdown")
    wait_until("FRR took it down", lambda: session(net, peer)["remote_state"] == "AdminDown")
    assert session(net, peer)["diagnostic"] == "neighbor-signaled-session-down"


@families
def test_a_session_over_several_hops_with_frr(net: Network, family: int) -> None:
    left, right = net.left, net.right
    # The router speaks to the left host with its address on the right.
    peer, own = left.address(family), right.router_address(family)
    frr = Frr(
        left.host,
        "bfdd",
        config=f"""bfd
        peer {own} multihop local-address {peer}
        receive-interval {INTERVAL_MS}
        transmit-interval {INTERVAL_MS}""",
    )
    net.router.ctl(
        f"bfd udp session add multihop local-addr {own} peer-addr {peer} desired-min-tx {INTERVAL_US} "
        f"required-min-rx {INTERVAL_US} detect-mult 3"
    )
    wait_up(net, peer)
    wait_until("FRR says so", lambda: frr.bfd_peers()[own]["status"] == "up")
    net.router.ctl(f"bfd udp session del multihop local-addr {own} peer-addr {peer}")
    wait_until("FRR hears it", lambda: frr.bfd_peers()[own]["status"] == "down")
    assert frr.bfd_peers()[own]["remote-diagnostic"] == "administratively down"


@families
def test_routes_leave_a_peer_that_is_down_and_come_back(net: Network, family: int) -> None:
    left, right = net.left, net.right
    prefix, far = (
        ("198.51.100.0/24", "198.51.100.9") if family == 4 else ("2001:db8:99::/48", "2001:db8:99::9")
    )
    length = 32 if family == 4 else 128
    for side in net.sides:
        side.host.ip("addr", "add", f"{far}/{length}", "dev", "lo", *(["nodad"] if family == 6 else []))
    net.meet()
    net.router.ctl(
        f"ip route add {prefix} via {left.address(family)} {left.interface} preference 0 "
        f"via {right.address(family)} {right.interface} preference 1"
    )
    Bird(left.host, bird_config(left, family))
    add(net, left, family)
    wait_up(net, left.address(family))
    sent = net.router.counters
    before = {side.interface: sent(side.interface)["tx_packets"] for side in net.sides}
    ping_all_from_router(net, far)
    cut(left)
    wait_state(net, left.address(family), "Down")
    ping_all_from_router(net, far)
    assert sent(right.interface)["tx_packets"] >= before[right.interface] + 3, "by the right"
    mend(left)
    wait_up(net, left.address(family))
    after = sent(right.interface)["tx_packets"]
    ping_all_from_router(net, far)
    assert sent(right.interface)["tx_packets"] <= after + 1, "by the left again"


def ping_all_from_router(net: Network, address: str) -> None:
    """Ping from the router until it is answered: routes move a moment after the session."""
    wait_until(
        f"{address} answers the router",
        lambda: "3 received" in net.router.ctl(f"ping {address} repeat 3 interval 0.02"),
    )


def test_what_is_for_the_peer_itself_reaches_it_while_its_session_is_down(net: Network) -> None:
    net.meet()
    add(net, net.left, 4)
    reach(net.right.host, net.left.ip4)
    ping_all(net.right.host, net.left.ip4)


def test_echo_packets_go_round_through_a_linux_host(net: Network) -> None:
    left = net.left
    left.host.sysctl("net.ipv4.conf.all.forwarding", 1)
    frr = Frr(
        left.host,
        "bfdd",
        config=f"""bfd
        profile looped
        echo receive-interval 60
        receive-interval {INTERVAL_MS}
        transmit-interval {INTERVAL_MS}
        exit
        peer {left.router_ip4} interface {DEVICE}
        profile looped""",
    )
    net.router.configure(
        """create loopback interface instance 0
        set interface ip address loop0 192.0.2.9/31
        set interface state loop0 up
        bfd udp echo-source set interface loop0"""
    )
    net.meet()
    add(net, left, 4)
    wait_up(net, left.ip4)
    wait_until("echo packets come back", lambda: session(net, left.ip4)["echoes_received"] > 10)
    row = session(net, left.ip4)
    assert row["detection_time_ms"] >= 3000, "control packets are slow meanwhile"
    assert frr.bfd_peers()[left.router_ip4]["status"] == "up"
    left.host.sysctl("net.ipv4.conf.all.forwarding", 0)
    wait_until("the session has ended", lambda: session(net, left.ip4)["went_down"] > 0)


def test_echo_packets_of_frr_go_round_through_the_router(net: Network) -> None:
    left = net.left
    frr = Frr(
        left.host,
        "bfdd",
        config=f"""bfd
        peer {left.router_ip4} interface {DEVICE}
        receive-interval {INTERVAL_MS}
        transmit-interval {INTERVAL_MS}
        echo transmit-interval {INTERVAL_MS}
        echo receive-interval {INTERVAL_MS}
        echo-mode""",
    )
    net.meet()
    add(net, left, 4)
    wait_up(net, left.ip4)

    def came_back() -> int:
        counters = {peer["peer"]: peer for peer in frr.json("show bfd peers counters")}
        return int(counters[left.router_ip4]["echo-packet-input"])

    wait_until("FRR's echo packets come back", lambda: came_back() > 10)
    row = session(net, left.ip4)
    assert row["went_down"] == 0
    assert frr.bfd_peers()[left.router_ip4]["status"] == "up"


@families
def test_routes_leave_a_next_hop_of_several_hops_that_is_down_and_come_back(
    net: Network, family: int
) -> None:
    left, right = net.left, net.right
    prefix, far = (
        ("198.51.100.0/24", "198.51.100.9") if family == 4 else ("2001:db8:99::/48", "2001:db8:99::9")
    )
    lone, length = ("10.9.9.9", 32) if family == 4 else ("2001:db8:9::9", 128)
    for side in net.sides:
        for address in (far, *([lone] if side is left else [])):
            no_dad = ["nodad"] if family == 6 else []
            side.host.ip("addr", "add", f"{address}/{length}", "dev", "lo", *no_dad)
    net.meet()
    net.router.ctl(f"ip route add {lone}/{length} via {left.address(family)} {left.interface}")
    net.router.ctl(
        f"ip route add {prefix} via {lone} preference 0 "
        f"via {right.address(family)} {right.interface} preference 1"
    )
    own = left.router_address(family)
    Frr(
        left.host,
        "bfdd",
        config=f"""bfd
        peer {own} multihop local-address {lone}
        receive-interval {INTERVAL_MS}
        transmit-interval {INTERVAL_MS}""",
    )
    net.router.ctl(
        f"bfd udp session add multihop local-addr {own} peer-addr {lone} desired-min-tx {INTERVAL_US} "
        f"required-min-rx {INTERVAL_US} detect-mult 3"
    )
    wait_up(net, lone)
    sent = net.router.counters
    before = sent(right.interface)["tx_packets"]
    ping_all_from_router(net, far)
    assert sent(right.interface)["tx_packets"] <= before + 1, "by the left"
    cut(left)
    wait_state(net, lone, "Down")
    ping_all_from_router(net, far)
    assert sent(right.interface)["tx_packets"] >= before + 3, "by the right"
    mend(left)
    wait_up(net, lone)


def test_the_configuration_loads_again_with_its_keys(net: Network) -> None:
    net.router.ctl("bfd key set conf-key-id 3 type keyed-sha1 secret 00ff10")
    add(net, net.left, 4, "conf-key-id 3 bfd-key-id 9")
    add(net, net.right, 6)
    net.router.ctl(f"bfd udp session set-flags admin down {words(net.right, 6)}")
    shown = net.router.ctl("show running-config")
    assert "00ff10" not in shown
    assert "<hidden>" in shown
    whole = net.router.ctl("show running-config secrets")
    lines = [line for line in whole.splitlines() if line.startswith("bfd ")]
    assert len(lines) == 4, lines
    for side, family in ((net.left, 4), (net.right, 6)):
        net.router.ctl(f"bfd udp session del {words(side, family)}")
    net.router.ctl("bfd key del conf-key-id 3")
    net.router.configure("\n".join(lines))
    again = net.router.ctl("show running-config secrets")
    assert [line for line in again.splitlines() if line.startswith("bfd ")] == lines
