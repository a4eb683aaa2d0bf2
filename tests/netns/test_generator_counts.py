"""What quiver-tg counts, keeps and tells, beside Linux and before a peer that stops reading."""

from __future__ import annotations

import base64
import json
import signal
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from scapy.utils import PcapNgReader

from peers.capture import Capture, lines_of
from peers.namespace import Namespace, veth
from peers.network import namespaces
from peers.processes import Process, need, parse_json, run, wait_until
from peers.router import Router, binary

#: Slow enough for a ring of 1,024 frames on a busy machine.
RATE = "500"
FRAMES = 500
STAMP_BYTES = 16


@contextmanager
def linux_bridge() -> Iterator[tuple[Namespace, Namespace]]:
    """The generator's namespace, with port0 and port1, and a Linux bridge between them."""
    with namespaces("generator", "linux") as (own, linux):
        linux.ip("link", "add", "br0", "type", "bridge", "mcast_snooping", "0")
        linux.ip("link", "set", "br0", "up")
        for number in (0, 1):
            veth(own, f"port{number}", linux, f"to{number}", 1500)
            own.sysctl(f"net.ipv6.conf.port{number}.disable_ipv6", 1)
            linux.ip("link", "set", f"to{number}", "master", "br0")
        yield own, linux


def profile(folder: Path) -> dict[str, Any]:
    """One way through the bridge, with a bad end of the line, and both ends captured."""
    captures = [
        {"port": 0, "direction": "sent", "filter": "udp and stream 0", "file": str(folder / "sent.pcapng")},
        {"port": 1, "direction": "received", "filter": "udp", "file": str(folder / "received.pcapng")},
    ]
    return {
        "ports": [
            {"af_packet": {"interface": "port0"}, "ip4": ["198.18.0.2"]},
            {
                "af_packet": {"interface": "port1"},
                "ip4": ["198.18.0.3"],
                "faults": {"loss": 0.05, "duplicate": 0.05, "corrupt": 0.05, "seed": 3},
            },
        ],
        "streams": [
            {
                "from": 0,
                "to": 1,
                "frame": 100,
                "layers": {
                    "ethernet": {"src": "02:00:00:00:00:01", "dst": "02:00:00:00:00:02"},
                    "ip4": {"src": "198.18.0.2", "dst": "198.18.0.3"},
                    "udp": {"src_port": 1024, "dst_port": 1025},
                },
            }
        ],
        "captures": captures,
        "self_test": False,
    }


def frames(file: Path) -> list[bytes]:
    """What scapy finds in a capture; tshark must find as many, in the order of time."""
    need("tshark")
    with PcapNgReader(str(file)) as reader:
        found = [bytes(packet) for packet in reader]
    times = run("tshark", "-r", str(file), "-T", "fields", "-e", "frame.time_epoch").stdout.split()
    assert len(times) == len(found)
    assert times == sorted(times, key=float)
    assert all(len(at.partition(".")[2]) == 9 for at in times), "nanoseconds"
    return found


def histogram_count(text: str) -> int:
    """How many values a histogram of an HDR interval log (V2, compressed, base64) holds."""
    raw = base64.b64decode(text)
    cookie, length = int.from_bytes(raw[:4]), int.from_bytes(raw[4:8])
    assert cookie & ~0xF0 == 0x1C849304
    payload = zlib.decompress(raw[8 : 8 + length])
    values = payload[40 : 40 + int.from_bytes(payload[4:8])]
    count, at = 0, 0
    while at < len(values):
        number, shift = 0, 0
        while True:
            byte = values[at]
            at += 1
            number |= (byte if shift == 56 else byte & 0x7F) << shift
            shift += 7
            if shift > 56 or not byte & 0x80:
                break
        signed = (number >> 1) ^ -(number & 1)
        count += max(signed, 0)
    return count


def test_captures_tcpdump_and_counts_agree_packet_for_packet(tmp_path: Path) -> None:
    path = tmp_path / "profile.yaml"
    path.write_text(json.dumps(profile(tmp_path)))
    words = [str(binary("quiver-tg")), "run", str(path), "--rate", RATE, "--duration", "1s", "--warmup", "0s"]
    words += ["--drain", "1s", "--json", "--histograms", "--socket", str(tmp_path / "tg.sock")]
    with linux_bridge() as (own, linux), Capture(linux, "to0", "udp") as seen:
        total = parse_json(run(*own.words(*words)).stdout)
        # What the device took has passed tcpdump by now: the last frame came back long ago.
        wire = lines_of(seen.file)
    stream, there = total["per_stream"][0], total["per_port"][1]
    sent, received = frames(tmp_path / "sent.pcapng"), frames(tmp_path / "received.pcapng")
    assert total["offered"] + total["not_sent"]["ring_full"] == len(sent) <= FRAMES
    assert len(wire) == total["offered"]
    assert [capture["dropped"] for capture in total["captures"]] == [0, 0]
    # Linux took nothing and gave nothing: what arrived is what was sent, stamps and all.
    assert len(received) == len(wire)
    assert {frame[-STAMP_BYTES:] for frame in received} <= {frame[-STAMP_BYTES:] for frame in sent}
    # What was done to them afterwards is what was found.
    done = there["faults"]
    assert min(done["lost"], done["duplicated"], done["corrupted"]) > 0, done
    lost_before = total["offered"] - len(received)
    assert total["lost"] == stream["lost"] == lost_before + done["lost"] + done["corrupted"]
    assert (total["duplicated"], total["corrupted"]) == (done["duplicated"], done["corrupted"])
    counted = ("received", "duplicated", "too_late", "misdelivered", "corrupted", "stale", "foreign")
    assert there["frames"] == sum(there[key] for key in counted)
    assert stream["received_bytes"] == 100 * stream["received"]
    for times in (stream["latency_ns"], stream["ipdv_ns"]):
        assert histogram_count(times["hdr"]) == times["count"]
    assert stream["latency_ns"]["count"] == stream["received"]


def test_a_peer_that_stops_reading_is_frames_not_sent_and_a_generator_that_lives_on(tmp_path: Path) -> None:
    with Router() as router:
        router.configure(
            """create interface memif id 0 master
            create interface memif id 1 master
            set interface l2 xconnect memif0/0 memif0/1
            set interface state memif0/0 up
            set interface state memif0/1 up"""
        )
        path = tmp_path / "profile.yaml"
        ports = [{"memif": {"socket": f"{router.folder}/memif.sock", "id": number}} for number in (0, 1)]
        layers = {"ethernet": {"src": "02:00:00:00:00:01", "dst": "02:00:00:00:00:02"}}
        streams = [{"from": 0, "to": 1, "frame": 64, "layers": layers}]
        path.write_text(json.dumps({"ports": ports, "streams": streams, "self_test": False}))
        words = [str(binary("quiver-tg")), "run", str(path), "--rate", "20000", "--duration", "3s"]
        words += ["--warmup", "0s", "--drain", "500ms", "--json", "--core", "0"]
        process = Process([*words, "--socket", str(tmp_path / "tg.sock")])
        try:
            router.wait_for_link("memif0/0", "memif0/1")
            # Some frames cross; how many does not matter.
            wait_until("frames cross", lambda: router.counters("memif0/1")["tx_packets"] > 100)
            router.process.send(signal.SIGSTOP)
            try:
                # A ring of 1,024 holds 51 ms of them.
                assert process.wait(60.0) == 0, process.text()
            finally:
                router.process.send(signal.SIGCONT)
            told = process.text()
            total = parse_json(told[told.index("{") :])
        finally:
            process.forget()
    assert total["offered"] == total["received"] + total["lost"]
    # What found the ring full was not sent, and is no loss; numbers go on where they stopped.
    assert total["not_sent"]["ring_full"] > 0, total
    assert total["intended"] == total["offered"] + sum(total["not_sent"].values())
    assert 1 <= total["per_stream"][0]["gaps"]["longest_frames"] <= total["lost"]
    assert (total["corrupted"], total["duplicated"], total["reordered"]) == (0, 0, 0)
