"""TRex as a generator, against a small server that speaks its protocol: what it is sent, and what it says."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from fake_trex import FakeTrex, running
from pydantic import ValidationError
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Dot1AD, Dot1Q, Ether

from conftest import SHORT_SEARCH, scenario
from quiver_lab.experiments.scenario import Scenario
from quiver_lab.generators import trex as trex_module
from quiver_lab.generators.headers import Ethernet, Headers, Ip4, Ip6, Run, Udp
from quiver_lab.generators.profile import Profile
from quiver_lab.generators.trex import Trex, TrexPlace
from quiver_lab.generators.trex_rpc import TrexError, TrexRpc, packed, unpacked
from quiver_lab.generators.trex_streams import frame_bytes, streams_of
from quiver_lab.results.annotations import marks
from quiver_lab.runs.running import SilentObserver, run_scenario
from quiver_lab.testbed.traffic import make_external_profile

EXTERNAL = {
    "kind": "external",
    "name": "a router on box 3",
    "macs": ["02:aa:00:00:00:01", "02:aa:00:00:00:02"],
}


def over_trex(port: int = 4501, **changes: object) -> Scenario:
    generator = {"kind": "trex", "port": port}
    return scenario(**{"forwarder": EXTERNAL, "generator": generator, "frame": 64, **changes})


def measurer(server: FakeTrex, **changes: object) -> Trex:
    place = TrexPlace("127.0.0.1", server.place, timeout_s=5.0)
    return Trex(make_external_profile(over_trex(server.place, **changes)), place)


def test_a_trial_offers_what_was_asked_for_and_counts_what_came_back() -> None:
    with running(FakeTrex(capacity_pps=8e6)) as server, measurer(server) as trex:
        assert trex.version == "v3.06"
        under = trex.measure(0.05, 6e6)
        assert (under.offered, under.lost, under.limit) == (300_000, 0, None)
        over = trex.measure(0.05, 10e6)
        assert over.intended == over.offered == 500_000
        assert over.received == pytest.approx(400_000, abs=2)
        assert [one.offered for one in over.directions] == [250_000, 250_000]
        beyond = trex.measure(0.05, 40e6)
        assert beyond.limit == "transmit"
        assert beyond.offered < beyond.intended
        flat_out = trex.measure(0.05, "max")
        assert flat_out.offered == pytest.approx(2 * 14.88e6 * 0.05, abs=2)
        assert flat_out.limit is None
    assert server.compressed > 0
    assert all(not port.owner and not port.streams for port in server.ports)
    # Streams stay as long as they are the same.
    assert server.seen.count("add_stream") == 4


def test_latency_is_of_one_trial_alone() -> None:
    with running(FakeTrex()) as server, measurer(server) as trex:
        for _ in range(2):
            latency = trex.measure(0.02, 6e6).latency
            assert latency is not None
            assert latency.count == 2 * 1_000
            assert (latency.min_ns, latency.p50_ns, latency.p99_ns, latency.max_ns) == (1e4, 1e4, 2e4, 1e5)


def test_a_burst_has_so_many_frames() -> None:
    with running(FakeTrex()) as server, measurer(server) as trex:
        burst = trex.burst(10_000, 4e6, 0.0)
        assert (burst.intended, burst.offered, burst.lost) == (10_000, 10_000, 0)
        assert trex.measure(0.02, 4e6).offered == 80_000


def test_an_experiment_runs_over_trex_against_a_forwarder_that_was_configured_elsewhere() -> None:
    short = SHORT_SEARCH | {"pdr_finder": None, "latency": None, "mrr": {"trials": 1, "duration_s": 0.05}}
    with running(FakeTrex(capacity_pps=5e6)) as server:
        result = run_scenario(over_trex(server.place, search=short), SilentObserver())
    assert result.error is None
    assert (result.generator, result.generator_version) == ("TRex", "v3.06")
    assert result.forwarder_version == "a router on box 3"
    assert result.name == "64b-1t1c-eth-ethip4-ip4base-ndrpdr"
    assert result.pdr_pps == pytest.approx(5e6, rel=0.03)
    assert result.telemetry is None
    assert not any(mark.kind == "simulated" for mark in marks(result))


@pytest.mark.parametrize(
    ("mode", "words"),
    [
        ("backwards", "counters went backwards"),
        ("garbage", "is no JSON"),
        ("lies", "and its header says"),
        ("stuck", "is still TX after the trial"),
    ],
)
def test_what_cannot_be_is_told_and_ends_the_run(
    mode: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trex_module, "GRACE_S", 0.1)
    with running(FakeTrex(mode=mode)) as server:
        result = run_scenario(over_trex(server.place), SilentObserver())
        assert result.status == "failed"
        assert words in (result.error or "")


def test_a_port_that_somebody_has_is_taken_only_by_force() -> None:
    with running(FakeTrex()) as server:
        server.ports[1].owner, server.ports[1].handler = "alice", "x"
        result = run_scenario(over_trex(server.place), SilentObserver())
        assert "port is owned by alice" in (result.error or "")
        assert server.ports[0].owner == ""
        place = TrexPlace("127.0.0.1", server.place, force=True)
        with Trex(make_external_profile(over_trex(server.place)), place) as trex:
            assert trex.measure(0.01, 1e6).lost == 0


def test_a_server_that_is_silent_is_told_and_not_waited_for_for_ever() -> None:
    with running(FakeTrex(mode="mute")) as server:
        rpc = TrexRpc("127.0.0.1", server.place, timeout_s=0.2)
        with pytest.raises(TrexError, match="did not answer api_sync_v2"):
            rpc.open()
        rpc.close()


def test_a_server_that_is_busy_is_asked_again_and_its_ticket_redeemed() -> None:
    with running(FakeTrex(mode="busy")) as server:
        rpc = TrexRpc("127.0.0.1", server.place)
        rpc.open()
        assert rpc.call("get_version") == {"version": "v3.06"}
        assert server.seen.count("get_version") == 2
        rpc.close()


def test_another_version_of_the_api_is_refused() -> None:
    with running(FakeTrex()) as server:
        rpc = TrexRpc("127.0.0.1", server.place)
        with pytest.raises(TrexError, match="version mismatch"):
            rpc.open((4, 0))
        rpc.close()


def test_long_messages_are_compressed_and_short_ones_are_not() -> None:
    short, long = b"x" * 255, b"y" * 256
    assert packed(short) == short
    assert packed(long)[:8] == b"\xab\xe8\x5c\xea\x00\x00\x01\x00"
    assert unpacked(packed(short)) == short
    assert unpacked(packed(long)) == long
    with pytest.raises(TrexError, match="cannot be unpacked"):
        unpacked(packed(long)[:8] + b"junk")
    with pytest.raises(TrexError, match="announced a message of"):
        unpacked(b"\xab\xe8\x5c\xea\xff\xff\xff\xff")


def layers(**more: Any) -> Headers:
    ethernet = Ethernet(src="02:00:00:00:00:01", dst="02:fe:00:00:00:01")
    return Headers(ethernet=ethernet, udp=Udp(), **more)


def test_frames_are_those_that_scapy_builds() -> None:
    head = Ether(src="02:00:00:00:00:01", dst="02:fe:00:00:00:01")
    four = layers(ip4=Ip4(src="198.18.0.2", dst="20.0.0.0"), vlan=7)
    bare = head / Dot1Q(vlan=7) / IP(id=0, src="198.18.0.2", dst="20.0.0.0", ttl=64)
    expected = bare / UDP(sport=1024, dport=1024, chksum=0) / bytes(64 - 46)
    assert frame_bytes(four, 64) == bytes(expected)
    six = layers(ip6=Ip6(src="2001:2::2", dst="2001:2:0:b000::"))
    expected = (
        head / IPv6(src="2001:2::2", dst="2001:2:0:b000::") / UDP(sport=1024, dport=1024) / bytes(78 - 62)
    )
    assert frame_bytes(six, 78) == bytes(expected)


def test_headers_of_a_file_are_the_same_as_those_of_models() -> None:
    head = {"ethernet": {"src": "02:00:00:00:00:01", "dst": "02:fe:00:00:00:01"}}
    tags = {"dot1ad": 10, "vlan": 7}
    ip4 = {"src": "198.18.0.2", "dst": {"first": "20.0.0.0", "count": 9}}

    def stream(*written: Any) -> dict[str, Any]:
        text = {"from": 0, "to": 1, "layers": list(written)}
        profile = Profile.model_validate({"ports": [{"tap": {"name": "a"}}], "streams": [text]})
        return streams_of(profile, 0)[0]

    bare = Ether(src="02:00:00:00:00:01", dst="02:fe:00:00:00:01") / Dot1AD(vlan=10) / Dot1Q(vlan=7)
    bare = bare / IP(id=0, src="198.18.0.2", dst="20.0.0.0", ttl=64)
    expected = bytes(bare / UDP(sport=1024, dport=1024, chksum=0) / bytes(64 - 50))
    assert base64.b64decode(stream(head, tags, {"ip4": ip4}, "udp")["packet"]["binary"]) == expected
    for refused, why in [
        ([{"mpls": 16}, {"ip4": ip4}, "udp"], "perhaps dot1ad and vlan"),
        ([{"ip4": ip4}, head, "udp"], "perhaps dot1ad and vlan"),
        ([head, {"ip4": ip4 | {"dscp": 3}}, "udp"], r"ip4\.dscp: over TRex ip4 has dst, src, ttl"),
        ([head, {"ip4": ip4 | {"ttl": [1, 2]}}, "udp"], r"ip4\.ttl: over TRex it is a number"),
        ([head, {"ip4": ip4 | {"src": ["1.1.1.1"]}}, "udp"], "src: over TRex values come from a range"),
        ([head, {"vlan": {"id": 3}}, {"ip4": ip4}, "udp"], "vlan: over TRex a tag is a number"),
        ([head, {"ip4": {"dst": "20.0.0.0"}}, "udp"], r"ip4\.src: over TRex it has to be said"),
    ]:
        with pytest.raises(TrexError, match=why):
            stream(*refused)


def test_what_varies_becomes_a_program_and_what_cannot_is_refused() -> None:
    many = over_trex(
        path="ip6", frame=78, table={"kind": "consecutive", "count": 1000}, traffic={"order": "rnd"}
    )
    (stream,) = streams_of(make_external_profile(many), 0)
    variable, write, checksum = stream["vm"]["instructions"]
    assert (variable["op"], variable["size"], int(variable["max_value"])) == ("random", 8, 999)
    assert write["pkt_offset"] == 14 + 32
    assert checksum == {"type": "fix_checksum_hw", "l2_len": 14, "l3_len": 40, "l4_type": 11}
    assert len(base64.b64decode(stream["packet"]["binary"])) == 78
    (twice,) = streams_of(make_external_profile(over_trex(tags="dot1ad", frame=72)), 0)
    assert Ether(base64.b64decode(twice["packet"]["binary"])).getlayer(Dot1Q).vlan == 100
    mixed = streams_of(make_external_profile(over_trex(frame="imix")), 1)
    assert [one["mode"]["rate"]["value"] for one in mixed] == [7.0, 4.0, 1.0]
    wide = layers(ip4=Ip4(src="1.1.1.1", dst="2.2.2.2"))
    wide = wide.model_copy(update={"udp": Udp(src_port=Run(first=60_000, count=10_000))})
    profile = make_external_profile(over_trex())
    beyond = profile.streams[0].model_copy(update={"layers": wide})
    with pytest.raises(TrexError, match="do not fit into 2 bytes"):
        streams_of(profile.model_copy(update={"streams": (beyond,)}), 0)


def test_generators_and_forwarders_that_cannot_meet_are_refused() -> None:
    with pytest.raises(ValidationError, match="TRex has wires of its own"):
        scenario(generator={"kind": "trex"})
    with pytest.raises(ValidationError, match="TRex has wires of its own"):
        scenario(forwarder=EXTERNAL)
    with pytest.raises(ValidationError, match="over TRex addresses come from ranges"):
        over_trex(table={"kind": "internet", "count": 1000})
    with pytest.raises(ValidationError, match="is no MAC address"):
        over_trex(forwarder=EXTERNAL | {"macs": ["router", "02:aa:00:00:00:02"]})
