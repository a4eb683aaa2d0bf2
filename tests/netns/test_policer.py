"""Policers between Linux hosts: what passes of a stream that is faster, and how packets are marked."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from peers.capture import Capture
from peers.network import DEVICE, Network, network, ping_all
from peers.processes import need, wait_until

#: A policer's rate in kilobits a second, and its burst in bytes.
CIR, CB = 20_000, 50_000
#: The stream is four times as fast.
OFFERED = "80M"
SECONDS = 3
#: A frame's Ethernet, IP and UDP headers.
HEADERS = 14 + 20 + 8
#: Rules of a long list, and changes behind which it has been compiled again.
LONG, COMPILED_AGAIN = 2000, 70


@pytest.fixture
def net() -> Iterator[Network]:
    """Two hosts, whose router meters the left one's packets."""
    need("iperf3")
    with network() as made:
        made.meet()
        yield made
        made.router.check_sound()


def datagrams(net: Network) -> int:
    """How many datagrams have reached the right host, taken by a program or not."""
    said = net.right.host.run("nstat", "-asz", "UdpInDatagrams", "UdpNoPorts", "UdpInErrors").stdout
    return sum(int(line.split()[1]) for line in said.splitlines() if line.startswith("Udp"))


def stream(net: Network, *words: str) -> None:
    """A stream of datagrams goes from the left host to the right one."""
    server = net.right.host.start("iperf3", "-s", "-1", "--forceflush")
    wait_until("iperf3 listens", lambda: ":5201" in net.right.host.run("ss", "-Hltn").stdout)
    all_words = ("iperf3", "-c", net.right.ip4, "-u", "-l", "1000", *words, "-J")
    net.left.host.run(*all_words, patience_s=60)
    server.wait()


def counted(net: Network, name: str) -> dict[str, tuple[int, int]]:
    """Packets and bytes of a policer, by what became of them."""
    rows = net.router.json(f"show policer {name}")
    return {row["result"]: (row["packets"], row["bytes"]) for row in rows}


@pytest.mark.parametrize("direction", ["input", "output"])
def test_no_more_passes_than_the_rate_says(net: Network, direction: str) -> None:
    interface = (net.left if direction == "input" else net.right).interface
    net.router.configure(
        f"""policer add name gold rate kbps cir {CIR} cb {CB}
        policer {direction} name gold {interface}"""
    )
    before, began = datagrams(net), time.monotonic()
    stream(net, "-b", OFFERED, "-t", str(SECONDS))
    took = time.monotonic() - began
    conform, violate = (counted(net, "gold")[word] for word in ("conform", "violate"))
    assert violate[0] > 0
    # What arrived was let pass, and it is no more than the rate and one burst.
    arrived = datagrams(net) - before
    assert arrived > 0
    assert arrived * (1000 + HEADERS) <= conform[1] <= CIR * 1000 / 8 * took + CB
    drops = net.router.errors()[(f"policer-{direction}", "policed")]
    assert drops == violate[0]

    net.router.ctl(f"policer {direction} name gold {interface} unapply")
    ping_all(net.left.host, net.right.ip4, "-s", "1400")


def test_what_exceeds_is_marked_in_both_families(net: Network) -> None:
    net.router.configure(
        f"""policer add name silver rate pps cir 1 cb 2 eir 1 eb 100 type 2r3c-4115 \
conform-action mark-and-transmit 10 exceed-action mark-and-transmit 12
        policer input name silver {net.left.interface}"""
    )
    for address in (net.right.ip4, net.right.ip6):
        net.router.ctl("policer reset name silver")
        with Capture(net.right.host, DEVICE, "(icmp or icmp6) and dst host " + address) as seen:
            ping_all(net.left.host, address, "-i", "0.1", count=8)
            seen.wait_for(8)
        text = "\n".join(seen.lines("-v"))
        classes = [word for word in ("0x28", "0x30") if word in text]
        assert classes == ["0x28", "0x30"], text
    assert counted(net, "silver")["violate"] == (0, 0)


def test_a_list_says_which_packets_a_policer_meters(net: Network) -> None:
    interface = net.left.interface
    net.router.configure(
        f"""policer add name gold rate kbps cir {CIR} cb {CB}
        set acl-plugin acl index 5 permit proto udp dport 5201
        set policer classify interface {interface} input acl 5 policer gold"""
    )
    before = datagrams(net)
    stream(net, "-b", OFFERED, "-t", "1")
    arrived, first = datagrams(net) - before, counted(net, "gold")
    assert first["violate"][0] > 0
    # iperf3 speaks TCP to the same port: what its list has not is not metered.
    assert 0 < arrived <= first["conform"][0]
    drops = net.router.errors()[("policer-classify-input-ip4", "policed")]
    assert drops == first["violate"][0]
    # Another port is not metered, and neither is IPv6.
    ping_all(net.left.host, net.right.ip6, count=20)
    assert counted(net, "gold") == first
    # A list that is replaced matches the next packet.
    net.router.ctl("set acl-plugin acl index 5 permit proto icmp")
    ping_all(net.left.host, net.right.ip4, count=3)
    assert counted(net, "gold")["conform"][0] == first["conform"][0] + 3
    stream(net, "-b", OFFERED, "-t", "1")
    assert counted(net, "gold")["violate"] == first["violate"]
    assert "is used by" in net.router.refused("delete acl-plugin acl index 5")
    assert "acl 5 del" in net.router.refused("policer del name gold")
    net.router.configure(
        f"""set policer classify interface {interface} input acl 5 del
        policer del name gold
        delete acl-plugin acl index 5"""
    )


def test_rules_that_come_one_by_one_say_which_packets_a_policer_meters(net: Network, tmp_path: Path) -> None:
    """In a list that is too long to be compiled again for each of them."""
    router, listed = net.router, tmp_path / "list.rules"
    others = [f"deny src 198.18.{number >> 8}.{number & 255}/32" for number in range(LONG)]
    listed.write_text("\n".join([*others, "permit proto icmp"]))
    router.configure(
        f"""policer add name gold rate kbps cir {CIR} cb {CB}
        set acl-plugin acl-file index 5 {listed}
        set policer classify interface {net.left.interface} input acl 5 policer gold"""
    )
    metered = 0

    def ping(count: int) -> int:
        """How many requests are metered in all."""
        ping_all(net.left.host, net.right.ip4, "-i", "0.01", count=count)
        return counted(net, "gold")["conform"][0]

    assert ping(3) == (metered := metered + 3)
    router.ctl("set acl-plugin acl-rule 5 insert 0 deny proto icmp")
    assert ping(3) == metered
    router.ctl("delete acl-plugin acl-rule 5 0")
    assert ping(3) == (metered := metered + 3)
    # So many that the list is compiled again meanwhile.
    for number in range(COMPILED_AGAIN):
        router.ctl(f"set acl-plugin acl-rule 5 insert {number * 20} deny src 198.18.99.{number}/32")
        assert ping(1) == (metered := metered + 1)
    router.ctl(f"set acl-plugin acl-rule 5 replace {LONG + COMPILED_AGAIN} permit proto udp")
    assert ping(3) == metered
    assert counted(net, "gold")["violate"] == (0, 0)


def test_a_classifier_session_says_which_policer_meters(net: Network) -> None:
    interface = net.left.interface
    net.router.configure(
        f"""policer add name gold rate kbps cir {CIR} cb {CB}
        classify table table 0 mask l3 ip4 proto l4 dst_port
        classify session policer-hit-next gold table-index 0 match l3 ip4 proto 17 l4 dst_port 5201
        set policer classify interface {interface} ip4-table 0"""
    )
    before = datagrams(net)
    stream(net, "-b", OFFERED, "-t", "1")
    arrived, first = datagrams(net) - before, counted(net, "gold")
    assert first["violate"][0] > 0
    assert 0 < arrived <= first["conform"][0]
    assert net.router.errors()[("policer-classify-input", "policed")] == first["violate"][0]
    # iperf3 speaks TCP to the same port, which no session has; and neither have pings.
    for address in (net.right.ip4, net.right.ip6):
        ping_all(net.left.host, address, count=20)
    assert counted(net, "gold") == first
    hits = net.router.json("show classify tables index 0 verbose")[0]["hits"]
    assert hits == first["conform"][0] + first["violate"][0]
    assert "used by sessions" in net.router.refused("policer del name gold")
    net.router.configure(
        f"""set policer classify interface {interface} input del
        classify table del table 0
        policer del name gold"""
    )
    stream(net, "-b", OFFERED, "-t", "1")


def subscriber(net: Network, address: str, direction: str) -> dict[str, int]:
    """What the packets of a subscriber came to in a direction."""
    rows = net.router.json(f"show policer subscriber {address}")
    return next(row for row in rows if row["direction"] == direction)


def test_each_subscriber_has_a_rate_of_its_own(net: Network) -> None:
    left = net.left
    other = left.ip4.rsplit(".", 1)[0] + ".77"
    left.host.run("ip", "address", "add", f"{other}/24", "dev", DEVICE)
    prefix = left.ip4.rsplit(".", 1)[0] + ".0/24"
    net.router.configure(
        f"""policer add name up rate kbps cir {CIR} cb {CB}
        policer add name down rate pps cir 1 cb 5
        policer subscriber add {prefix} policer down upload up each 32
        policer subscriber input {left.interface}
        policer subscriber output {left.interface}"""
    )
    # Each pings with a burst of its own; what is sent back is metered by its destination.
    for address in (left.ip4, other):
        text = left.host.run(
            "ping", "-q", "-c", "9", "-i", "0.02", "-W", "0.3", "-I", address, net.right.ip4, check=False
        ).stdout
        assert " 5 received" in text, text
        seen = subscriber(net, address, "download")
        assert (seen["conform"], seen["violate"]) == (5, 4), seen
        assert subscriber(net, address, "upload")["conform"] == 9
    drops = net.router.errors()[("policer-subscriber-output", "policed")]
    assert drops == 8
    # Another rate, told once for all, loses neither counts nor packets.
    net.router.ctl(f"policer subscriber add {prefix} policer up upload up each 32")
    ping_all(left.host, net.right.ip4, count=20)
    assert subscriber(net, left.ip4, "download")["conform"] >= 5 + 20
    before, began = datagrams(net), time.monotonic()
    stream(net, "-b", OFFERED, "-t", "2")
    took = time.monotonic() - began
    arrived, sent = datagrams(net) - before, subscriber(net, left.ip4, "upload")
    assert arrived > 0
    assert sent["violate"] > 0
    assert arrived * (1000 + HEADERS) <= sent["conform_bytes"] <= CIR * 1000 / 8 * (took + 5) + CB
    assert subscriber(net, other, "upload")["violate"] == 0
    net.router.ctl(f"policer subscriber del {prefix}")
    ping_all(left.host, net.right.ip4, count=20)


def test_networks_of_ip6_are_subscribers(net: Network) -> None:
    left = net.left
    prefix = left.ip6.split("::")[0] + "::/64"
    net.router.configure(
        f"""policer add name six rate pps cir 1 cb 6
        policer subscriber add {prefix} policer six
        policer subscriber output {left.interface}"""
    )
    text = left.host.run(
        "ping", "-6", "-q", "-c", "12", "-i", "0.02", "-W", "0.3", net.right.ip6, check=False
    ).stdout
    assert "12 packets transmitted" in text, text
    seen = subscriber(net, left.ip6, "download")
    # Neighbour discovery of the router itself may have taken one of the burst.
    assert seen["conform"] <= 7, seen
    assert seen["violate"] >= 5, seen
    ping_all(left.host, net.right.ip4, count=20)
