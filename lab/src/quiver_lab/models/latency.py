"""Average latency against load (Okelmann 2019, §6.4.1): l(t) = A - B · (1 - t / t_max) ^ (t_max / (C · t)).

The thesis's figures are A = 59 µs, B = 62 µs, C = 8. Near no load l is A - B · e^(-1/C); at t_max it is A.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from quiver_lab.models.fit import Array, Fit, ModelError, Parameter, least_squares, line, points

THESIS = (59_000.0, 62_000.0, 8.0)
"""A and B in nanoseconds, and C."""
LOAD_SHARE_MAX = 0.999
"""At t_max queues are full and the formula ends; points from there on are not fitted."""


def average_latency_ns(load: Array, t_max: float, a: float, b: float, c: float) -> Array:
    """The thesis's formula, for loads below `t_max`."""
    share = np.clip(load / t_max, 1e-9, 1.0 - 1e-12)
    return np.asarray(a - b * np.exp(np.log1p(-share) / (c * share)))


def fit_latency(measured: Sequence[tuple[float, float]], t_max_pps: float) -> Fit:
    """Fit (load, mean latency in ns) below the maximum throughput."""
    if t_max_pps <= 0.0:
        raise ModelError(f"the maximum throughput must be positive, not {t_max_pps}")
    below = [(load, latency) for load, latency in measured if load < LOAD_SHARE_MAX * t_max_pps]
    load, latency = points(below, 3)

    def model(t: Array, floor: float, rise: float, c: float) -> Array:
        # By what latency is near no load, and how far it rises, which bounds can keep positive.
        b = rise / np.exp(-1.0 / c)
        return average_latency_ns(t, t_max_pps, floor + rise, b, c)

    lowest, highest = float(latency.min()), float(latency.max())
    start = (lowest, max(highest - lowest, 0.01 * lowest), THESIS[2])
    bounds = ((0.0, 0.0, 0.05), (highest, 1e4 * highest, 1e3))
    (floor, rise, c), (floor_error, rise_error, c_error) = least_squares(model, load, latency, start, bounds)
    b = rise / float(np.exp(-1.0 / c))
    places = np.linspace(float(load[0]), LOAD_SHARE_MAX * t_max_pps, 200)
    return Fit(
        model="average latency against load",
        formula="l(t) = A - B · (1 - t / t_max) ^ (t_max / (C · t))",
        parameters=(
            Parameter("A", floor + rise, "ns", "latency when queues are full", rise_error),
            Parameter("B", b, "ns", "how much of it goes away with the load"),
            Parameter("C", c, "", "how long latency stays low as the load grows", c_error),
            Parameter("t_max", t_max_pps, "pps", "maximum throughput, as measured"),
            Parameter("l_0", floor, "ns", "latency near no load: A - B · e^(-1/C)", floor_error),
        ),
        measured=line(load, latency),
        predicted=line(load, average_latency_ns(load, t_max_pps, floor + rise, b, c)).y,
        curve=line(places, average_latency_ns(places, t_max_pps, floor + rise, b, c)),
        x_label="frames per second",
        y_label="mean latency, ns",
    )
