"""Throughput against the core's clock (Okelmann 2019, §6.1): f(c) = (k · c / c_max + 1 - k) · p_max.

The thesis found k = 0.9: a tenth of the throughput does not depend on the clock. A forwarder that waits for
nothing but its core has k = 1.
"""

from __future__ import annotations

from collections.abc import Sequence

from quiver_lab.models.fit import Array, Fit, Parameter, least_squares, line, points, span

THESIS_SHARE = 0.9


def fit_clock(measured: Sequence[tuple[float, float]]) -> Fit:
    """Fit (clock in Hz, frames per second) at two clocks or more."""
    hz, pps = points(measured, 2)
    c_max, p_top = float(hz[-1]), float(pps[-1])

    def throughput(c: Array, k: float, p_max: float) -> Array:
        return (k * c / c_max + 1.0 - k) * p_max

    (k, p_max), (k_error, p_error) = least_squares(
        throughput, hz, pps, (THESIS_SHARE, p_top), ((0.0, 0.0), (1.5, 10.0 * p_top))
    )
    places = span(hz)
    return Fit(
        model="throughput against clock",
        formula="f(c) = (k · c / c_max + 1 - k) · p_max",
        parameters=(
            Parameter("k", k, "", "share of the throughput that follows the clock", k_error),
            Parameter("p_max", p_max, "pps", "throughput at the highest clock", p_error),
            Parameter("c_max", c_max, "Hz", "the highest clock measured"),
        ),
        measured=line(hz, pps),
        predicted=line(hz, throughput(hz, k, p_max)).y,
        curve=line(places, throughput(places, k, p_max)),
        x_label="clock, Hz",
        y_label="frames per second",
    )
