"""Throughput against the share of time in the look-up node (Okelmann 2019, §6.3.4): f = t_max · (1 - d).

If a larger table costs clocks in the look-up and nowhere else, every point lies on one line; t_max is what
the forwarder would do if looking up cost nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from quiver_lab.forwarders import NodeClocks, clocks_by_node
from quiver_lab.models.fit import Array, Fit, ModelError, Parameter, least_squares, line, points


def share_of_nodes(nodes: Sequence[NodeClocks], names: Collection[str]) -> float:
    """The share of a packet's clocks that is spent in the named nodes."""
    by_node = clocks_by_node(nodes)
    total = sum(clocks for _, clocks in by_node)
    if total <= 0.0:
        raise ModelError("the telemetry counted no clocks")
    return sum(clocks for node, clocks in by_node if node in names) / total


def fit_lookup(measured: Sequence[tuple[float, float]]) -> Fit:
    """Fit (share of time in the look-up between 0 and 1, frames per second), one point a table size."""
    share, pps = points(measured, 1)
    if float(share[-1]) >= 1.0:
        raise ModelError("a share of time lies between 0 and 1")

    def throughput(d: Array, t_max: float) -> Array:
        return t_max * (1.0 - d)

    start = float(np.median(pps / (1.0 - share)))
    (t_max,), (error,) = least_squares(throughput, share, pps, (start,), ((0.0,), (np.inf,)))
    places = np.linspace(0.0, min(1.0, float(share[-1]) * 1.1), 50)
    return Fit(
        model="throughput against time in the look-up",
        formula="f(d) = t_max · (1 - d)",
        parameters=(Parameter("t_max", t_max, "pps", "throughput if looking up cost nothing", error),),
        measured=line(share, pps),
        predicted=line(share, throughput(share, t_max)).y,
        curve=line(places, throughput(places, t_max)),
        x_label="share of time in the look-up",
        y_label="frames per second",
    )
