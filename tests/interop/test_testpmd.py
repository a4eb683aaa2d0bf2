"""DPDK's testpmd on the other end of memif, in both roles: every packet is accounted for on both sides."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from peers.processes import need, wait_until
from peers.router import Router
from peers.testpmd import Port, Testpmd

#: Frames in which the router announces an interface's addresses when its link comes up.
ANNOUNCEMENTS_MAX = 3
#: Packets that each test moves at least.
PACKETS_MIN = 20_000
#: testpmd's `flowgen` sends to this address, and to 10.253.0.0/16.
FLOWGEN_MAC = "00:01:02:03:04:01"

#: testpmd's role, and the router's.
ROLES = [("client", "master"), ("server", "slave")]
NAMES = ["testpmd-client", "testpmd-server"]
both_roles = pytest.mark.parametrize(("role", "own"), ROLES, ids=NAMES)
#: The router as a slave that lends its buffers, too.
and_lending = pytest.mark.parametrize(
    ("role", "own"), [*ROLES, ("server", "slave zero-copy")], ids=[*NAMES, "testpmd-server-zero-copy"]
)


def two_interfaces(router: Router, own: str, more: str = "") -> None:
    """memif1/0 and memif1/1, both up."""
    for number in (0, 1):
        router.configure(
            f"create interface memif id {number} socket-id 1 {own} {more}\n"
            f"set interface state memif1/{number} up"
        )


def cross_connect(router: Router) -> None:
    """Both directions."""
    router.configure(
        "set interface l2 xconnect memif1/0 memif1/1\nset interface l2 xconnect memif1/1 memif1/0"
    )


def two_ports(role: str, socket: Path, more: str = "") -> tuple[Port, Port]:
    """testpmd's ends of the two interfaces."""
    return Port(role, 0, socket, more), Port(role, 1, socket, more)


def connect(router: Router, testpmd: Testpmd) -> None:
    """Wait for both links, on both sides."""
    testpmd.wait_for_links(2)
    router.wait_for_link("memif1/0", "memif1/1")


def run_until(router: Router, testpmd: Testpmd, mode: str, *, tx_first: int = 0) -> None:
    """Forward until enough packets were received by the router on some interface, then empty the rings."""
    before = received(router)
    testpmd.forward(mode, tx_first=tx_first)
    wait_until(f"{PACKETS_MIN} packets", lambda: received(router) >= before + PACKETS_MIN, 30.0)
    testpmd.stop()
    testpmd.drain()


def received(router: Router) -> int:
    """Packets received on both interfaces."""
    return sum(router.counters(name)["rx_packets"] for name in ("memif1/0", "memif1/1"))


def check_accounts(router: Router, testpmd: Testpmd) -> None:
    """What testpmd sent the router received; what the router sent and did not drop testpmd received."""
    errors = router.errors()

    def balanced() -> bool:
        counts = testpmd.counts()
        for number in (0, 1):
            own = router.counters(f"memif1/{number}")
            full = errors[f"memif1/{number}-tx", "tx-ring-full"]
            if own["rx_packets"] != counts[number].tx_packets:
                return False
            if own["tx_packets"] - full != counts[number].rx_packets:
                return False
        return True

    try:
        wait_until("both sides agree", balanced)
    except AssertionError as error:
        shown = f"{router.ctl('show interface')}\n{router.ctl('show errors')}"
        raise AssertionError(f"{error}: testpmd {testpmd.counts()}\n{shown}") from error


@and_lending
@pytest.mark.parametrize("mode", ["flowgen", "macswap", "txonly"])
def test_frames_cross_between_two_memif_interfaces_and_each_is_accounted_for(
    router: Router, socket: Path, role: str, own: str, mode: str
) -> None:
    two_interfaces(router, own)
    cross_connect(router)
    with Testpmd(*two_ports(role, socket)) as testpmd:
        connect(router, testpmd)
        run_until(router, testpmd, mode, tx_first=8 if mode == "macswap" else 0)
        check_accounts(router, testpmd)
        assert all(port.rx_packets for port in testpmd.counts())


@both_roles
def test_one_testpmd_sends_and_another_receives(router: Router, socket: Path, role: str, own: str) -> None:
    need("dpdk-testpmd")  # nothing is left behind in the router where it is missing
    # testpmd listens once per socket and process.
    other = socket.with_name("other.sock")
    router.configure(
        f"""create memif socket id 2 filename {other}
        create interface memif id 0 socket-id 1 {own}
        create interface memif id 0 socket-id 2 {own}
        set interface state memif1/0 up
        set interface state memif2/0 up
        set interface l2 xconnect memif1/0 memif2/0"""
    )
    with Testpmd(Port(role, 0, socket)) as sender, Testpmd(Port(role, 0, other)) as receiver:
        sender.wait_for_links(1)
        receiver.wait_for_links(1)
        router.wait_for_link("memif1/0", "memif2/0")
        receiver.forward("rxonly")
        sender.forward("txonly")
        wait_until("packets", lambda: router.counters("memif2/0")["tx_packets"] >= PACKETS_MIN)
        sender.stop()

        def all_arrived() -> bool:
            full = router.errors()["memif2/0-tx", "tx-ring-full"]
            sent = sender.counts()[0].tx_packets
            return (
                router.counters("memif1/0")["rx_packets"] == sent
                and receiver.counts()[0].rx_packets == sent - full
            )

        wait_until("every packet is received or counted", all_arrived)
    router.ctl("delete interface memif memif2/0")
    router.ctl("delete memif socket id 2")


@and_lending
def test_ipv4_is_routed_between_two_memif_interfaces(
    router: Router, socket: Path, role: str, own: str
) -> None:
    router.configure(
        f"""create interface memif id 0 socket-id 1 {own} hw-addr {FLOWGEN_MAC}
        create interface memif id 1 socket-id 1 {own} hw-addr 00:01:02:03:04:02
        set interface state memif1/0 up
        set interface state memif1/1 up
        set interface ip address memif1/0 192.0.2.1/25
        set interface ip address memif1/1 192.0.2.129/25
        ip neighbor memif1/1 192.0.2.130 02:00:00:00:00:99 static
        ip route add 10.253.0.0/16 via 192.0.2.130 memif1/1"""
    )
    with Testpmd(*two_ports(role, socket)) as testpmd:
        connect(router, testpmd)
        run_until(router, testpmd, "flowgen")
        counts, errors = testpmd.counts(), router.errors()
        full = errors["memif1/1-tx", "tx-ring-full"]
        # Port 1's own frames are not for the router's second MAC address.
        assert errors["ethernet-input", "mac-mismatch"] == counts[1].tx_packets
        assert router.counters("memif1/0")["ip4"] == counts[0].tx_packets
        routed = counts[0].tx_packets - full
        assert routed <= counts[1].rx_packets <= routed + ANNOUNCEMENTS_MAX
        assert counts[0].rx_packets <= ANNOUNCEMENTS_MAX


@and_lending
def test_frames_of_several_segments_cross_whole(router: Router, socket: Path, role: str, own: str) -> None:
    two_interfaces(router, own)
    cross_connect(router)
    with Testpmd(*two_ports(role, socket)) as testpmd:
        connect(router, testpmd)
        testpmd.do("set txpkts 2000,2000,2000,2000,1000")
        # A few frames go round and round: when a ring is full, testpmd's count of free slots slips
        # below 0 at a frame of several segments, and it writes indices that cannot be.
        run_until(router, testpmd, "macswap", tx_first=1)
        check_accounts(router, testpmd)
        sent = router.counters("memif1/0")
        assert sent["rx_bytes"] == 9000 * sent["rx_packets"]
        text = testpmd.do("show port stats 1")
        octets = int(re.search(r"RX-bytes: +(\d+)", text)[1])  # type: ignore[index]
        assert octets == 9000 * testpmd.counts()[1].rx_packets


@and_lending
def test_several_queues_carry_packets(router: Router, socket: Path, role: str, own: str) -> None:
    two_interfaces(router, own, "rx-queues 2 tx-queues 2")
    cross_connect(router)
    with Testpmd(*two_ports(role, socket), options=("--rxq=2", "--txq=2", "--nb-cores=1")) as testpmd:
        connect(router, testpmd)
        assert len(router.interface("memif1/0")["rx_queues"]) == 2
        run_until(router, testpmd, "flowgen")
        check_accounts(router, testpmd)


@both_roles
@pytest.mark.parametrize("mode", ["interrupt", "adaptive", "polling"])
def test_every_receive_mode_takes_packets(
    router: Router, socket: Path, role: str, own: str, mode: str
) -> None:
    two_interfaces(router, own)
    cross_connect(router)
    for number in (0, 1):
        router.ctl(f"set interface rx-mode memif1/{number} {mode}")
    with Testpmd(*two_ports(role, socket)) as testpmd:
        connect(router, testpmd)
        assert {queue["mode"] for queue in router.interface("memif1/0")["rx_queues"]} == {mode}
        run_until(router, testpmd, "flowgen")
        check_accounts(router, testpmd)


def test_a_zero_copy_client_is_served(router: Router, socket: Path) -> None:
    if huge_pages_free() < 128:
        pytest.skip("testpmd's zero copy needs 128 huge pages of 2 MiB")
    two_interfaces(router, "master")
    cross_connect(router)
    ports = two_ports("client", socket, "zero-copy=yes")
    with Testpmd(*ports, eal=("-m", "200", "--in-memory", "--single-file-segments")) as testpmd:
        connect(router, testpmd)
        run_until(router, testpmd, "flowgen")
        check_accounts(router, testpmd)


def huge_pages_free() -> int:
    """Huge pages of 2 MiB that nobody uses."""
    found = re.search(r"HugePages_Free: +(\d+)", Path("/proc/meminfo").read_text())
    return int(found[1]) if found else 0


def start_again(start: Callable[[], Testpmd], router: Router) -> Testpmd:
    """A testpmd after one that was killed, connected again."""
    testpmd = start()
    connect(router, testpmd)
    return testpmd


@and_lending
def test_a_peer_killed_under_traffic_comes_back_and_no_buffer_is_lost(
    router: Router, socket: Path, role: str, own: str
) -> None:
    two_interfaces(router, own)
    cross_connect(router)

    def start() -> Testpmd:
        # testpmd as a server does not listen where a dead one has left its socket.
        if role == "server":
            socket.unlink(missing_ok=True)
        return Testpmd(*two_ports(role, socket))

    for round_number in range(1, 4):
        with start_again(start, router) as testpmd:
            router.ctl("clear interfaces")
            testpmd.forward("flowgen")
            wait_until("packets both ways", lambda: received(router) >= PACKETS_MIN)
            testpmd.kill()
            wait_until(
                "both links down",
                lambda: not any(router.interface(f"memif1/{n}")["link"] == "up" for n in (0, 1)),
            )
        router.check_sound()
        shown = {row["interface"]: row for row in router.json("show memif")["interfaces"]}
        assert shown["memif1/0"]["connects"] == round_number
        assert shown["memif1/0"]["reason"]
    with start_again(start, router) as testpmd:
        router.ctl("clear interfaces")
        router.ctl("clear errors")
        run_until(router, testpmd, "flowgen")
        check_accounts(router, testpmd)


def test_only_who_knows_the_secret_is_let_in(router: Router, socket: Path) -> None:
    router.configure(
        "create interface memif id 0 socket-id 1 master secret sesame\nset interface state memif1/0 up"
    )
    with Testpmd(Port("client", 0, socket, "secret=abracadabra")) as testpmd:
        wait_until(
            "the refusal is told", lambda: "secret" in router.json("show memif")["interfaces"][0]["reason"]
        )
        assert router.interface("memif1/0")["link"] == "down"
        assert not testpmd.is_linked(0)
    with Testpmd(Port("client", 0, socket, "secret=sesame")) as testpmd:
        testpmd.wait_for_links(1)
        router.wait_for_link("memif1/0")


def test_a_deleted_interface_takes_the_peers_link_down(router: Router, socket: Path) -> None:
    two_interfaces(router, "master")
    with Testpmd(*two_ports("client", socket)) as testpmd:
        connect(router, testpmd)
        router.ctl("delete interface memif memif1/0")
        wait_until("the peer knows", lambda: not testpmd.is_linked(0))
        assert testpmd.is_linked(1)
