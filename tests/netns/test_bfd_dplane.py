"""FRR's bfdd gives its sessions to the router, with bgpd on top of it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from peers.bfd_daemon import BfdDaemon, Session
from peers.mirrored import Mirrored, give_addresses, mirrored_network
from peers.namespace import Namespace
from peers.processes import SCRATCH, wait_until
from peers.routing_daemons import Bird, Frr

INTERVAL_MS = 100
#: The host on the left, and the router as the host sees it.
PEER, OWN = "10.0.1.2", "10.0.1.1"
PREFIX = "198.51.100.0/24"


@pytest.fixture
def net() -> Iterator[Mirrored]:
    """A router with twins, which waits for a BFD daemon beside them."""
    with mirrored_network() as made:
        give_addresses(made)
        made.router.ctl(f"bfd dplane connect netns {made.twins.name}")
        yield made


def timing() -> str:
    """The lines of a session's intervals."""
    return f"receive-interval {INTERVAL_MS}\ntransmit-interval {INTERVAL_MS}"


def daemon(net: Mirrored, *more: str, config: str, at: str = "ipv4:127.0.0.1") -> Frr:
    """FRR beside the twins, whose sessions are the router's."""
    words = ("--dplaneaddr", at)
    return Frr(net.twins, "bfdd", *more, words=words, config=config)


def sessions(net: Mirrored) -> list[dict[str, Any]]:
    """The router's sessions."""
    return list(net.router.json("show bfd sessions verbose"))


def dplane(net: Mirrored) -> dict[str, Any]:
    """What the router says of the daemon."""
    (row,) = net.router.json("show bfd dplane")
    return dict(row)


def status(frr: Frr, peer: str) -> str:
    """What a daemon says of its session with a peer."""
    return str(frr.bfd_peers().get(peer, {}).get("status"))


def wait_up(net: Mirrored, *ends: tuple[Frr, str]) -> None:
    """Wait until the router's session and those of daemons are up."""
    wait_until("the router's session is up", lambda: [row["state"] for row in sessions(net)] == ["Up"])
    for frr, peer in ends:
        wait_until(f"the daemon's session with {peer} is up", lambda f=frr, p=peer: status(f, p) == "up")


def cut(host: Namespace, port: int) -> None:
    """Let a host neither hear nor say BFD."""
    rule = f"udp dport {port} drop;"
    chains = [
        f"chain {hook} {{ type filter hook {hook} priority 0; policy accept; {rule} }};"
        for hook in ("input", "output")
    ]
    host.run("nft", f"table inet cut {{ {' '.join(chains)} }}")


def mend(host: Namespace) -> None:
    """Let a host hear and say BFD again."""
    host.run("nft", "delete table inet cut")


def session_lines(peer: str, more: str = "") -> str:
    """A session that the daemon has by itself, without a protocol on top."""
    return f"bfd\npeer {peer} {more}\n{timing()}"


def test_bgpd_follows_a_session_that_the_router_has_for_bfdd(net: Mirrored) -> None:
    far = Frr(
        net.left,
        "bfdd",
        "bgpd",
        config=f"""bfd
        profile fast
        {timing()}
        exit
        exit
        router bgp 65002
        no bgp ebgp-requires-policy
        no bgp network import-check
        neighbor {OWN} remote-as 65001
        neighbor {OWN} bfd profile fast
        address-family ipv4 unicast
        network {PREFIX}""",
    )
    frr = daemon(
        net,
        "bgpd",
        config=f"""bfd
        profile fast
        {timing()}
        exit
        exit
        router bgp 65001
        no bgp ebgp-requires-policy
        neighbor {PEER} remote-as 65002
        neighbor {PEER} timers 60 180
        neighbor {PEER} bfd profile fast""",
    )
    wait_up(net, (frr, PEER), (far, OWN))
    (row,) = sessions(net)
    assert (row["origin"], row["local"], row["peer"]) == ("daemon", OWN, PEER)
    assert int(frr.bfd_peers()[PEER]["id"]) == row["my_discriminator"]
    wait_until("the intervals are agreed", lambda: sessions(net)[0]["detection_time_ms"] == 300)
    wait_until("bgpd has the route", lambda: PREFIX in frr.ask("show ip bgp"))
    told = frr.bfd_peers()[PEER]
    assert (told["remote-receive-interval"], told["remote-transmit-interval"]) == (INTERVAL_MS, INTERVAL_MS)
    counters = {peer["peer"]: peer for peer in frr.json("show bfd peers counters")}[PEER]
    assert counters["control-packet-input"] > 0
    assert counters["control-packet-output"] > 0
    assert "bfd udp session" not in net.router.ctl("show running-config")

    cut(net.left, 3784)
    wait_until("bfdd hears that the session is down", lambda: status(frr, PEER) == "down")
    wait_until("bgpd has dropped the route", lambda: PREFIX not in frr.ask("show ip bgp"))
    assert "BFD" in frr.ask(f"show bgp neighbors {PEER}")
    mend(net.left)
    wait_up(net, (frr, PEER), (far, OWN))
    wait_until("the route is back", lambda: PREFIX in frr.ask("show ip bgp"))


def test_a_daemon_that_comes_back_takes_its_session_over_and_one_that_stays_away_loses_it(
    net: Mirrored,
) -> None:
    far = Frr(net.left, "bfdd", config=session_lines(OWN, "interface h0"))
    frr = daemon(net, config=session_lines(PEER, f"local-address {OWN} interface e0"))
    wait_up(net, (frr, PEER), (far, OWN))
    frr.kill()
    wait_until("the daemon is gone", lambda: dplane(net)["orphans"] == 1)
    again = daemon(net, config=session_lines(PEER, f"local-address {OWN} interface e0"))
    wait_up(net, (again, PEER), (far, OWN))
    (row,) = sessions(net)
    assert (row["went_down"], row["came_up"]) == (0, 1), "it never went down"
    assert (dplane(net)["orphans"], dplane(net)["sessions"]) == (0, 1)
    again.kill()
    wait_until("the session is deleted", lambda: not sessions(net), patience_s=30)
    wait_until("the peer hears it", lambda: status(far, OWN) == "down")


def test_the_operator_of_the_daemon_shuts_a_session_down_and_deletes_it(net: Mirrored) -> None:
    far = Frr(net.left, "bfdd", config=session_lines(OWN, "interface h0"))
    where = f"peer {PEER} local-address {OWN} interface e0"
    frr = daemon(net, config=f"bfd\n{where}\n{timing()}")
    wait_up(net, (frr, PEER), (far, OWN))
    refused = net.router.answer(f"bfd udp session del interface tap0 local-addr {OWN} peer-addr {PEER}")
    assert "routing daemon" in refused.out + refused.err
    frr.configure(f"bfd\n{where}\nshutdown")
    wait_until("the router took it down", lambda: sessions(net)[0]["state"] == "AdminDown")
    frr.configure(f"bfd\n{where}\nno shutdown")
    wait_up(net, (frr, PEER), (far, OWN))
    frr.configure(f"bfd\nno {where}")
    wait_until("the session is deleted", lambda: not sessions(net))


def test_bytes_that_are_no_message_end_the_connection_and_nothing_else(net: Mirrored) -> None:
    net.router.ctl(
        f"bfd udp session add interface tap0 local-addr {OWN} peer-addr {PEER} desired-min-tx 100000 "
        "required-min-rx 100000 detect-mult 3"
    )
    before = len(sessions(net))
    net.router.ctl("bfd dplane close")
    net.router.ctl(f"bfd dplane listen netns {net.twins.name}")
    opened = "exec 3<>/dev/tcp/127.0.0.1/50700; printf"
    for number, text in enumerate(
        [r"\x02\0\0\0\0\0\0\x18", r"\x01\0\0\x09\0\0\0\x08", r"\x01\0\0\x02\0\0\xff\xff"]
    ):
        net.twins.run("bash", "-c", f"{opened} '{text}' >&3; cat <&3")
        wait_until("it is counted", lambda n=number: dplane(net)["malformed"] == n + 1)
        assert dplane(net)["daemon"] is None
    echo = r"\x01\0\0\0\0\x07\0\x18" + "0123456789abcdef"
    answer = net.twins.run("bash", "-c", f"{opened} '{echo}' >&3; head -c 24 <&3 | od -An -tx1 -v")
    assert answer.stdout.split()[:8] == ["01", "00", "00", "01", "00", "07", "00", "18"]
    assert len(sessions(net)) == before


def bird(net: Mirrored) -> Bird:
    """BIRD's end of a session, on the left host."""
    return Bird(
        net.left,
        f"""router id {PEER};
        protocol device {{}}
        protocol bfd {{
            interface "h0" {{
                min rx interval {INTERVAL_MS} ms; min tx interval {INTERVAL_MS} ms; multiplier 3;
            }};
            neighbor {OWN} dev "h0";
        }}""",
    )


def test_a_daemon_at_a_unix_socket_adds_a_session_and_hears_of_it(net: Mirrored) -> None:
    path = net.router.folder / "bfd.sock"
    net.router.ctl("bfd dplane close")
    net.router.ctl(f"bfd dplane listen unix {path}")
    assert path.stat().st_mode & 0o777 == 0o660
    session = Session(0x1234, OWN, PEER, INTERVAL_MS * 1000)
    peer = bird(net)
    with BfdDaemon(path) as daemon:
        assert daemon.echo(b"0123456789abcdef") == b"0123456789abcdef"
        daemon.add(session)
        up = daemon.wait_for("Up")
        wait_until("BIRD says so", lambda: peer.bfd_states() == {OWN: "Up"})
        (row,) = sessions(net)
        assert up.number == row["my_discriminator"] == session.number
        assert up.remote_discriminator == row["your_discriminator"] != 0
        counts = daemon.counters(session)
        received_bytes, received, sent_bytes, sent = counts[:4]
        assert received > 0
        assert sent > 0
        assert (received_bytes, sent_bytes) == (24 * received, 24 * sent)
        cut(net.left, 3784)
        assert daemon.wait_for("Down").number == session.number
        mend(net.left)
        daemon.wait_for("Up")
        daemon.delete(session)
        wait_until("the session is deleted", lambda: not sessions(net))
        wait_until("BIRD hears it", lambda: peer.bfd_states() == {OWN: "Down"})
    assert net.router.ctl("show running-config").count(f"bfd dplane listen unix {path}") == 1
    net.router.ctl("bfd dplane close")
    assert not path.exists()


def test_a_daemon_that_comes_back_to_a_unix_socket_takes_over_what_it_had(net: Mirrored) -> None:
    path = net.router.folder / "bfd.sock"
    net.router.ctl("bfd dplane close")
    net.router.ctl(f"bfd dplane listen unix {path}")
    session = Session(0x77, OWN, PEER, INTERVAL_MS * 1000)
    peer = bird(net)
    daemon = BfdDaemon(path)
    daemon.add(session)
    daemon.wait_for("Up")
    daemon.die()
    wait_until("the daemon is gone", lambda: dplane(net)["orphans"] == 1)
    with BfdDaemon(path) as again:
        again.add(session)
        assert again.wait_for("Up").number == session.number
        assert (dplane(net)["orphans"], dplane(net)["sessions"]) == (0, 1)
        (row,) = sessions(net)
        assert (row["went_down"], row["came_up"]) == (0, 1), "it never went down"
        # One that connects anew takes the place of the one before, which is closed.
        with BfdDaemon(path) as third:
            third.add(session)
            assert third.wait_for("Up").number == session.number
    wait_until("the session is deleted", lambda: not sessions(net), patience_s=30)
    wait_until("BIRD hears it", lambda: peer.bfd_states() == {OWN: "Down"})


def test_a_socket_that_answers_and_a_file_are_left_alone(net: Mirrored) -> None:
    net.router.ctl("bfd dplane close")
    refused = net.router.refused(f"bfd dplane listen unix {net.router.cli_socket}")
    assert "another process answers" in refused
    file = net.router.folder / "text"
    file.write_text("text")
    assert "is not a socket" in net.router.refused(f"bfd dplane listen unix {file}")
    assert file.read_text() == "text"
    assert "bfd dplane" not in net.router.ctl("show running-config")


def test_frr_listens_at_a_unix_socket_and_comes_back_there(net: Mirrored) -> None:
    folder = Path(tempfile.mkdtemp(dir=SCRATCH, prefix="dplane-"))
    # The daemon gives up its rights, and makes its socket here.
    folder.chmod(0o777)
    path = folder / "bfd.sock"
    net.router.ctl("bfd dplane close")
    net.router.ctl(f"bfd dplane connect unix {path}")
    peer = bird(net)
    config = session_lines(PEER, f"local-address {OWN} interface e0")
    frr = daemon(net, config=config, at=f"unix:{path}")
    wait_up(net, (frr, PEER))
    wait_until("BIRD says so", lambda: peer.bfd_states() == {OWN: "Up"})
    assert dplane(net)["daemon"] == str(path)
    frr.kill()
    wait_until("the daemon is gone", lambda: dplane(net)["orphans"] == 1)
    again = daemon(net, config=config, at=f"unix:{path}")
    wait_up(net, (again, PEER))
    (row,) = sessions(net)
    assert (row["went_down"], row["came_up"]) == (0, 1), "it never went down"
