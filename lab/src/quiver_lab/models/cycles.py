"""The cycles model: from clocks per node it predicts packets per second, and names the bottleneck.

A worker has so many clocks a second and each packet costs so many: their quotient is the throughput. Where a
measurement is below it, something else was at its end first; how busy the workers were says how far off.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from quiver_lab.forwarders import NodeClocks, clocks_by_node
from quiver_lab.models.fit import ModelError

AGREES = 0.1
"""Prediction and measurement within this share agree."""


@dataclass(frozen=True, slots=True)
class NodeCost:
    """One node's part of a packet's clocks."""

    node: str
    clocks: float
    """Per packet of the whole traffic: a node that half of the packets visit counts half."""
    share: float
    speedup_if_free: float
    """Predicted throughput without this node over that with it: the most that work on it can give."""


@dataclass(frozen=True, slots=True)
class CyclesPrediction:
    """What the clocks say about throughput."""

    clocks_per_packet: float
    hz: float
    workers: int
    predicted_pps: float
    nodes: tuple[NodeCost, ...]
    """The dearest first."""
    measured_pps: float | None
    error: float | None
    """Predicted over measured less 1."""
    busy: float | None
    """The share of the workers' clocks that the measured rate needs."""
    verdict: str

    @property
    def bottleneck(self) -> str:
        """The node that takes most of a packet's clocks."""
        return self.nodes[0].node


def predict_throughput(
    nodes: Sequence[NodeClocks], hz: float, workers: int, measured_pps: float | None = None
) -> CyclesPrediction:
    """From the telemetry of a trial at the maximum rate. `hz` is the rate of the time stamp counter in which
    clocks are counted. At low rates vectors are short and packets cost more: such telemetry predicts less."""
    if hz <= 0.0 or workers < 1:
        raise ModelError("a prediction needs the counter's rate and at least one worker")
    by_node = [(node, clocks) for node, clocks in clocks_by_node(nodes) if clocks > 0.0]
    total = sum(clocks for _, clocks in by_node)
    if total <= 0.0:
        raise ModelError("the telemetry counted no clocks")
    costs = tuple(
        NodeCost(
            node=node,
            clocks=clocks,
            share=clocks / total,
            speedup_if_free=total / (total - clocks) if len(by_node) > 1 else float("inf"),
        )
        for node, clocks in sorted(by_node, key=lambda pair: pair[1], reverse=True)
    )
    predicted = hz * workers / total
    has_measured = measured_pps is not None and measured_pps > 0.0
    error = predicted / measured_pps - 1.0 if has_measured and measured_pps else None
    busy = measured_pps * total / (hz * workers) if has_measured and measured_pps else None
    return CyclesPrediction(
        clocks_per_packet=total,
        hz=hz,
        workers=workers,
        predicted_pps=predicted,
        nodes=costs,
        measured_pps=measured_pps,
        error=error,
        busy=busy,
        verdict=_verdict(costs[0], total, predicted, error, busy),
    )


def _verdict(
    dearest: NodeCost, total: float, predicted: float, error: float | None, busy: float | None
) -> str:
    said = (
        f"{total:.0f} clocks a packet allow {predicted / 1e6:.2f} Mpps; most of them, {dearest.share:.0%}, "
        f"are spent in {dearest.node}"
    )
    if error is None or busy is None:
        return said + "."
    if abs(error) <= AGREES:
        return (
            f"{said}. Measured was {abs(error):.1%} {'less' if error > 0 else 'more'}: the core is the limit."
        )
    if error > 0.0:
        return (
            f"{said}. Measured was much less: the workers needed only {busy:.0%} of their clocks, so that "
            "something else (generator, memory, line, another program on the core) was the limit."
        )
    return (
        f"{said}. Measured was {-error / (1.0 + error):.0%} more than that: the telemetry and the rate are "
        "not of the same traffic, or the counter's rate is wrong."
    )
