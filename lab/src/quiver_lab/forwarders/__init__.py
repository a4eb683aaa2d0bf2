"""Forwarders under test, one file each behind one small protocol."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable


@dataclass(frozen=True, slots=True)
class NodeClocks:
    """What one node of the packet graph did, summed over the workers."""

    node: str
    calls: int
    vectors: int
    """Packets, as operators of vector routers call them."""
    clocks_per_packet: float
    vectors_per_call: float


@dataclass(frozen=True, slots=True)
class DropCount:
    """Packets that ended in one node for one reason."""

    node: str
    reason: str
    count: int


@dataclass(frozen=True, slots=True)
class Buffering:
    """Where frames wait while a forwarder's core stands still."""

    frames: int
    shared: bool = False
    """By all directions; otherwise each has as much."""

    def of(self, directions: int) -> int:
        """Frames of so many directions together."""
        return self.frames if self.shared else self.frames * directions


UNKNOWN_BUFFERING = Buffering(1_024)
"""Of a forwarder that was not started here: a network card's ring, about."""


class NotInstalledError(RuntimeError):
    """A peer that is not on this machine; the message says how to get it."""

    def __init__(self, program: str, package: str) -> None:
        super().__init__(f"{program} is not installed (apt-get install {package})")


def clocks_by_node(nodes: Sequence[NodeClocks]) -> list[tuple[str, float]]:
    """Clocks that each node costs a packet of this traffic: a node that only half of the packets visit
    counts half."""
    packets = max((node.vectors for node in nodes), default=0)
    return [(node.node, node.clocks_per_packet * node.vectors / packets) for node in nodes if packets]


class Forwarder(Protocol):
    """A forwarder that a session starts, loads, asks and stops. Whatever it is told about what it shall do
    is in its constructor: a forwarder that has started is configured."""

    version: str

    def start(self) -> None:
        """Start it with its whole configuration; returns when it is ready to forward. `NotInstalledError`
        when it is not there; nothing stays of a start that fails."""

    def died(self) -> str | None:
        """Why it forwards no more, with its last words; None while it lives."""

    def clear_counters(self) -> None:
        """Set the counters to zero that the next three read."""

    def nodes(self) -> list[NodeClocks]:
        """Clocks by node since the last clear."""

    def drops(self) -> list[DropCount]:
        """Drops by reason since the last clear."""

    def counters(self) -> dict[str, str]:
        """All that it counts, in its own words: what was asked, and the answer. What it cannot clear
        counts from its start."""

    def pause(self) -> None:
        """Let it stand still, its core free for another."""

    def resume(self) -> None:
        """Let it go on."""

    def stop(self) -> None:
        """End it; nothing of it stays."""


@runtime_checkable
class SessionKeeper(Protocol):
    """A forwarder that counts the sessions that it has made of packets, and can end all of them."""

    def sessions(self) -> int | None:
        """How many it has now; None: it is not one of those that make some."""

    def end_sessions(self) -> None:
        """End all of them."""
