"""The two fitting functions of PLRsearch: average loss rate against offered load, by two parameters each.

Both are double integrals of a bump that is symmetric around `mrr`, as wide as `spread`, and scaled so that
far beyond `mrr` a forwarder passes `mrr`: of the logistic function's derivative (stretch), and of the normal
density (erf). Everything is in logarithms: a loss of 1e-7 and one of a million a second stand side by side.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
import numpy.typing as npt
import scipy

Array = npt.NDArray[np.float64]
LogLossRate = Callable[[Array, Array, Array], Array]
"""Logarithm of frames lost per second, by load, mrr and spread (all frames per second)."""

Shape = Literal["stretch", "erf"]

TAIL = 30.0
"""Beyond this, exp(-x) is nothing beside 1 and the first term of a series is the function."""
ERFCX_SERIES = 1e3
BISECTIONS = 36
"""Halvings of a bracket of ten decades: the load is then exact to 1e-9 of itself."""


def _log_difference(larger: Array, smaller: Array) -> Array:
    """log(e^larger - e^smaller)."""
    with np.errstate(divide="ignore"):
        return np.asarray(larger + np.log(-np.expm1(np.minimum(smaller - larger, 0.0))))


def _log_softplus(x: Array) -> Array:
    """log(log(1 + e^x))."""
    middle = np.clip(x, -TAIL, TAIL)
    inner = np.log(np.log1p(np.exp(middle)))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(x < -TAIL, x, np.where(x > TAIL, np.log(np.maximum(x, TAIL)), inner))


def _log_integrated_erf(x: Array) -> Array:
    """log of the integral of (1 + erf) / 2 from minus infinity to x."""
    right = np.maximum(x, -3.0)
    direct = np.log(0.5 * (right * scipy.special.erfc(-right) + np.exp(-right * right) / np.sqrt(np.pi)))
    left = np.clip(-x, 3.0, ERFCX_SERIES)
    scaled = np.log(0.5 * (1.0 / np.sqrt(np.pi) - left * scipy.special.erfcx(left)))
    far = np.maximum(-x, ERFCX_SERIES)
    series = -np.log(4.0 * np.sqrt(np.pi)) - 2.0 * np.log(far)
    tail = -x * x + np.where(-x > ERFCX_SERIES, series, scaled)
    return np.asarray(np.where(x > -3.0, direct, tail))


def log_stretch(load: Array, mrr: Array, spread: Array) -> Array:
    """Stretch: the integral of the logistic function, from no load to `load`."""
    at_load, at_zero = _log_softplus((load - mrr) / spread), _log_softplus(-mrr / spread)
    return np.asarray(np.log(spread) + np.log1p(np.exp(-mrr / spread)) + _log_difference(at_load, at_zero))


def log_erf(load: Array, mrr: Array, spread: Array) -> Array:
    """Erf: the integral of the error function, from no load to `load`."""
    at_load, at_zero = _log_integrated_erf((load - mrr) / spread), _log_integrated_erf(-mrr / spread)
    scale = np.log(2.0 * spread) - np.log1p(scipy.special.erf(mrr / spread))
    return np.asarray(scale + _log_difference(at_load, at_zero))


FUNCTIONS: dict[Shape, LogLossRate] = {"stretch": log_stretch, "erf": log_erf}


def critical_load(function: LogLossRate, loss_ratio: float, mrr: Array, spread: Array) -> Array:
    """The load whose average loss ratio is `loss_ratio`. The ratio grows with the load (the loss rate is
    convex), so that halving finds it; where even the smallest load loses more, it is nearly zero."""
    low, high = np.log(mrr) - 22.0, np.log(mrr) + 1.4
    target = np.log(loss_ratio)
    for _ in range(BISECTIONS):
        middle = (low + high) / 2.0
        below = function(np.exp(middle), mrr, spread) - middle <= target
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.asarray(np.exp((low + high) / 2.0))
