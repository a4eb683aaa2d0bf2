"""The load: our own generator as a server, which measures while the test does other things."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from peers.processes import CommandError, Process, parse_json, wait_until
from peers.router import binary

#: Slots of the memif rings: they bridge a pause of 0.7 ms at 12 Mpps and direction.
RING_SIZE = 8192
FRAME_BYTES = 64
#: Destinations of each direction.
DESTINATIONS = 254
#: The generator kept to a rate when it offered so much of it: it shares its core with the control thread, and
#: on a busy machine with programs of others.
KEPT_PART = 0.5
#: How long the generator waits for late frames, seconds.
DRAIN_S = 0.05
#: How long an answer may take after the sending, seconds.
GRACE_S = 15.0


def profile(socket: Path) -> dict[str, Any]:
    """Two memif ports on core 0, traffic from each to the other through routes of the router."""
    ports = [
        {
            "memif": {"socket": str(socket), "id": number, "role": "slave", "ring_size": RING_SIZE},
            "ip4": [f"198.18.{number}.2"],
            "mac": f"02:00:00:00:00:0{number + 1}",
        }
        for number in (0, 1)
    ]
    streams = [
        {
            "from": number,
            "to": 1 - number,
            "frame": FRAME_BYTES,
            "layers": {
                "ethernet": {"src": f"02:00:00:00:00:0{number + 1}", "dst": f"02:fe:00:00:00:0{number + 1}"},
                "ip4": {
                    "src": f"198.18.{number}.2",
                    "dst": {"first": f"{21 - number}.0.0.0", "count": DESTINATIONS, "order": "random"},
                },
                "udp": {},
            },
        }
        for number in (0, 1)
    ]
    return {"version": 1, "cores": [0], "ports": ports, "streams": streams}


@dataclass(frozen=True)
class Counts:
    """What the generator found, in frames."""

    offered: int
    received: int
    #: Found the transmit ring full: the router did not take them in time.
    ring_full: int
    #: Received behind a later one, twice, damaged or at the wrong port.
    faults: int
    #: Received and of nobody's making.
    foreign: int
    limit: str | None
    duration_s: float
    #: For so long the generator itself could not send.
    held_up_s: float
    latency_max_us: float

    @property
    def lost(self) -> int:
        """Offered and not received."""
        return self.offered - self.received

    def in_words(self) -> str:
        """The load and the loss."""
        return f"{self.lost} of {self.offered / 1e6:.2f} M lost"

    @property
    def rate_pps(self) -> float:
        """Offered frames a second, both directions."""
        return self.offered / self.duration_s


def counts_of(reply: dict[str, Any]) -> Counts:
    """The generator's answer."""
    if "error" in reply:
        raise CommandError(f"quiver-tg: {reply['error']['message']}")
    reply = reply["result"]["json"]
    faults = sum(reply[name] for name in ("duplicated", "misdelivered", "corrupted", "too_late"))
    return Counts(
        offered=reply["offered"],
        received=reply["received"],
        ring_full=reply["not_sent"]["ring_full"],
        faults=faults,
        foreign=reply["foreign"],
        limit=reply["limit"],
        duration_s=reply["duration_s"],
        held_up_s=reply["held_up_s"],
        latency_max_us=(reply["latency_ns"] or {"max": 0})["max"] / 1000,
    )


def bridged_us(rate_pps: float) -> int:
    """How long the rings of both directions take frames while nobody takes them out, at this load."""
    return int(1e6 * RING_SIZE / (rate_pps / 2))


class Generator:
    """A `quiver-tg serve` in the background."""

    def __init__(self, folder: Path, made: dict[str, Any]) -> None:
        path = folder / "profile.yaml"
        path.write_text(json.dumps(made))
        self.process = Process([str(binary("quiver-tg")), "serve", "--stdio", str(path)], stdin=True)
        self._answers = 0
        try:
            self.process.wait_for_text('"method":"ready"')
        except BaseException:
            self.process.forget()
            raise
        self._answers = len(self._replies())

    def _replies(self) -> list[str]:
        lines = self.process.text().split("\n")[:-1]
        return [line for line in lines if line.startswith("{") and '"method":"progress"' not in line]

    def begin(self, rate_pps: float | str, duration_s: float) -> Callable[[], Counts]:
        """Send from now on. What is returned waits for the end and tells the counts."""
        arguments = {
            "rate": rate_pps,
            "duration": duration_s,
            "warmup": 0.0,
            "drain": DRAIN_S,
            "no_make_up": True,
        }
        params = {"command": "measure", "args": arguments}
        request = {"jsonrpc": "2.0", "id": self._answers, "method": "command", "params": params}
        self.process.say(json.dumps(request))

        def answered() -> bool:
            if not self.process.is_alive:
                raise CommandError(f"quiver-tg ended:\n{self.process.text()}")
            return len(self._replies()) > self._answers

        def end() -> Counts:
            wait_until("the generator answers", answered, duration_s + GRACE_S)
            self._answers += 1
            return counts_of(parse_json(self._replies()[-1]))

        return end

    def measure(self, rate_pps: float | str, duration_s: float) -> Counts:
        """Send, and wait for the end."""
        return self.begin(rate_pps, duration_s)()

    def stop(self) -> None:
        """End it."""
        self.process.stop()
        self.process.forget()


def ndr(generator: Generator, tell: Callable[[str], None], least_pps: float, trial_s: float = 0.35) -> float:
    """A rate without loss that is near the highest, packets a second, both directions; 5 to 8 s.

    Bisection between nothing and flat out; a rate counts when one of two trials loses nothing and the
    generator kept to it. Below `least_pps` it is not sought.
    """
    low, high = 0.0, generator.measure("max", trial_s).received / trial_s
    tell(f"flat out {high / 1e6:.1f} Mpps")
    while high - low > 0.06 * high and high > least_pps:
        rate = (low + high) / 2
        trials = [generator.measure(rate, trial_s) for _ in range(2)]
        tell(f"{rate / 1e6:.1f} Mpps: {', '.join(trial.in_words() for trial in trials)}")
        is_good = any(trial.lost == 0 and trial.offered >= KEPT_PART * rate * trial_s for trial in trials)
        low, high = (rate, high) if is_good else (low, rate)
    return low


def pin_here(core: int = 0) -> None:
    """This process and those that it starts stay away from the worker's core."""
    os.sched_setaffinity(0, {core})
