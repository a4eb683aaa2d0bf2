"""A small TRex for tests: the server's side of its RPC specification over ZeroMQ, its two ports wired to each
other through a forwarder of known capacity. It is strict: what a real server would refuse is refused."""

from __future__ import annotations

import base64
import json
import struct
import threading
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import zmq

LINE_PPS = 14.88e6
"""Of one port."""


class RefusedError(Exception):
    """What the server answers instead of a result."""

    def __init__(self, words: str, code: int = -32_000) -> None:
        super().__init__(words)
        self.code = code


@dataclass
class FakePort:
    """One port."""

    owner: str = ""
    handler: str = ""
    streams: dict[int, dict[str, Any]] = field(default_factory=dict)
    sending_until: float = 0.0
    sent: int = 10_000
    """A server that has run before."""
    received: int = 0


@dataclass
class FakeTrex:
    """All of it."""

    capacity_pps: float = 8e6
    """Of the forwarder, both directions together."""
    mode: str = ""
    """backwards: counters are cleared in a trial; stuck: ports never end; mute: no answer; plain: no header
    on long answers; lies: a header with a wrong length; busy: try again once, then a ticket."""
    ports: list[FakePort] = field(default_factory=lambda: [FakePort(), FakePort()])
    seen: list[str] = field(default_factory=list)
    compressed: int = 0
    """Requests that came compressed."""
    delays: dict[str, dict[str, int]] = field(default_factory=dict)
    asked_again: int = 0
    place: int = 0

    def answer(self, method: str, parameters: dict[str, Any]) -> Any:
        """One request."""
        self.seen.append(method)
        if method == "api_sync_v2":
            if (parameters["name"], parameters["major"]) != ("STL", 5):
                raise RefusedError("version mismatch: server speaks STL 5.1")
            return {"api_h": "SPhoCDIV"}
        if parameters.pop("api_h", None) != "SPhoCDIV":
            raise RefusedError("API handler is missing or wrong")
        if self.mode == "busy" and method == "get_version":
            self.asked_again += 1
            raise RefusedError("busy", -32_001) if self.asked_again == 1 else RefusedError("77", -32_002)
        if method == "get_async_results":
            assert parameters["ticket_id"] == 77
            return {"version": "v3.06"}
        if method == "get_version":
            return {"version": "v3.06", "build_date": "Jan 1 2025", "build_time": "0", "built_by": "x" * 400}
        if method == "get_pgid_stats":
            return {"latency": {pg: {"lat": {"histogram": self.delays.get(str(pg), {})}} for pg in
                                map(str, parameters["pgids"])}, "flow_stats": {}, "ver_id": {}}  # fmt: skip
        return self._of_port(method, self.ports[parameters["port_id"]], parameters)

    def _of_port(self, method: str, port: FakePort, parameters: dict[str, Any]) -> Any:
        if method == "acquire":
            if port.owner and not parameters["force"]:
                raise RefusedError(f"port is owned by {port.owner}")
            port.owner, port.handler = (
                parameters["user"],
                f"h{parameters['port_id']}{parameters['session_id']}",
            )
            return port.handler
        if method == "get_port_stats":
            return {"opackets": port.sent, "ipackets": port.received, "ierrors": 0, "oerrors": 0}
        if method == "get_port_status":
            stuck = self.mode == "stuck" and port.sending_until > 0.0
            sends = stuck or time.monotonic() < port.sending_until
            return {"owner": port.owner, "state": "TX" if sends else "STREAMS" if port.streams else "IDLE"}
        if not port.handler or parameters.get("handler") != port.handler:
            raise RefusedError("port is not owned by this handler")
        return getattr(self, f"_{method}")(port, parameters)

    def _release(self, port: FakePort, _told: dict[str, Any]) -> Any:
        port.owner = port.handler = ""
        return {}

    def _stop_traffic(self, port: FakePort, _told: dict[str, Any]) -> Any:
        port.sending_until = 0.0
        return {}

    def _remove_all_streams(self, port: FakePort, _told: dict[str, Any]) -> Any:
        port.streams.clear()
        return {}

    def _remove_rx_filters(self, _port: FakePort, _told: dict[str, Any]) -> Any:
        return {}

    def _add_stream(self, port: FakePort, parameters: dict[str, Any]) -> Any:
        stream = parameters["stream"]
        packet = base64.b64decode(stream["packet"]["binary"], validate=True)
        if len(packet) < 60:
            raise RefusedError(f"packet of {len(packet)} bytes is too short")
        for one in stream["vm"]["instructions"]:
            if one["type"] == "flow_var" and not int(one["min_value"]) <= int(one["max_value"]) < 1 << (
                8 * one["size"]
            ):
                raise RefusedError(f"variable {one['name']} does not fit")
        port.streams[parameters["stream_id"]] = stream
        if stream["flow_stats"].get("rule_type") == "latency":
            self.delays[str(stream["flow_stats"]["stream_id"])] = {}
        return {}

    def _start_traffic(self, port: FakePort, parameters: dict[str, Any]) -> Any:
        if not port.streams:
            raise RefusedError("no streams are attached to the port")
        assert parameters["mul"]["op"] == "abs"
        kind, value = parameters["mul"]["type"], parameters["mul"]["value"]
        rate = LINE_PPS * value / 100.0 if kind == "percentage" else min(value, LINE_PPS)
        bursts = [one["mode"] for one in port.streams.values() if one["mode"]["type"] == "single_burst"]
        frames = sum(mode["total_pkts"] for mode in bursts)
        duration = frames / rate if bursts else parameters["duration"]
        sent = frames if bursts else round(rate * duration)
        other = self.ports[1 - self.ports.index(port)]
        port.sent += sent
        other.received += min(sent, round(self.capacity_pps / 2 * duration))
        port.sending_until = time.monotonic() + duration
        for stream in port.streams.values():
            if stream["flow_stats"].get("rule_type") == "latency":
                histogram = self.delays[str(stream["flow_stats"]["stream_id"])]
                for delay, count in (("10", 900), ("20", 90), ("100", 10)):
                    histogram[delay] = histogram.get(delay, 0) + count
        if self.mode == "backwards":
            port.sent = 0
        return {"multiplier": 1.0, "ts": time.monotonic()}


def served(trex: FakeTrex, socket: zmq.Socket[bytes], stop: threading.Event) -> None:
    """Answer until told to stop."""
    while not stop.is_set():
        if not socket.poll(20):
            continue
        message = socket.recv()
        if message[:4] == b"\xab\xe8\x5c\xea":
            trex.compressed += 1
            text = zlib.decompress(message[8:])
            assert struct.unpack(">I", message[4:8])[0] == len(text)
        else:
            assert len(message) < 256, "a long request must be compressed"
            text = message
        if trex.mode == "mute":
            continue
        request = json.loads(text)
        reply: dict[str, Any] = {"jsonrpc": "2.0", "id": request["id"]}
        try:
            reply["result"] = trex.answer(request["method"], dict(request["params"]))
        except RefusedError as error:
            parameters = {"code": error.code, "message": "command failed", "specific_err": str(error)}
            reply["error"] = parameters
        out = b"sorry" if trex.mode == "garbage" else json.dumps(reply).encode()
        if len(out) >= 256 and trex.mode != "plain":
            length = len(out) + (1 if trex.mode == "lies" else 0)
            out = struct.pack(">II", 0xABE85CEA, length) + zlib.compress(out)
        socket.send(out)
        if trex.mode == "mute":
            return


@contextmanager
def running(trex: FakeTrex) -> Iterator[FakeTrex]:
    """Serve at a port of the loopback."""
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    socket = context.socket(zmq.REP)
    trex.place = socket.bind_to_random_port("tcp://127.0.0.1")
    stop = threading.Event()
    thread = threading.Thread(target=served, args=(trex, socket, stop))
    thread.start()
    try:
        yield trex
    finally:
        stop.set()
        thread.join()
        socket.close(linger=0)
        context.term()
