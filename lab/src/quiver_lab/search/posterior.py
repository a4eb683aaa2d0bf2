"""Bayesian inference for PLRsearch: what the trials so far say about one fitting function's parameters.

Priors are those of the published description: `mrr` is Lomax with shape 1 above one frame per second, scaled
by the maximum load; `spread` is `mrr` to a power that is uniform between 0 and 1. In the coordinates used
here both are logistic. Loss counts are Poisson. The two-dimensional integral is done on a grid that is laid
along the axes of the posterior itself, so that it needs no random numbers and gives the same every time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import scipy

from quiver_lab.search.loss_functions import FUNCTIONS, Array, Shape, critical_load

GRID_POINTS = 41
"""To each side of the grid."""
GRID_REACH = 5.0
"""Standard deviations from the middle of the grid to its edge."""
LAYINGS_MAX = 12
"""How often the grid is laid anew until it fits the posterior."""
EDGE_MASS_MAX = 1e-4
"""More of the posterior than this on the grid's edge: it is cut off."""
FIT = 0.2
"""The grid fits when its axes and the posterior's differ by at most this share."""
START_GRID = 61
LOG_MRR_START = (-12.0, 6.0)
POWER_START = (-8.0, 8.0)
"""Where the first maximum is looked for: far more than any forwarder's parameters."""


@dataclass(frozen=True, slots=True)
class LossCount:
    """A trial as PLRsearch sees it."""

    load_pps: float
    duration_s: float
    lost: int


@dataclass(frozen=True, slots=True)
class CriticalLoad:
    """What one fitting function says about the critical load."""

    mean_pps: float
    stdev_pps: float


@dataclass
class Posterior:
    """One fitting function's posterior, kept between trials: each begins where the last one ended."""

    shape: Shape
    scale_pps: float
    """The maximum load; it gives `mrr` its dimension."""
    trials: list[LossCount] = field(default_factory=list)
    _best: Array | None = None
    _axes: Array | None = None

    def estimate(self, loss_ratio: float) -> CriticalLoad:
        """Mean and standard deviation of the critical load for a target loss ratio."""
        points, weights = self._grid()
        mrr, spread = self._parameters(points)
        loads = critical_load(FUNCTIONS[self.shape], loss_ratio, mrr, spread)
        mean = float(np.sum(weights * loads))
        variance = float(np.sum(weights * (loads - mean) ** 2))
        return CriticalLoad(mean, float(np.sqrt(variance)))

    def add(self, trials: Sequence[LossCount]) -> None:
        """Learn from more trials."""
        self.trials += trials

    def _parameters(self, points: Array) -> tuple[Array, Array]:
        """`mrr` and `spread` of points (n, 2) in coordinates without bounds."""
        mrr = 1.0 + self.scale_pps * np.exp(np.clip(points[:, 0], -60.0, 60.0))
        power = scipy.special.expit(points[:, 1])
        return mrr, np.exp(power * np.log(mrr))

    def _log_posterior(self, points: Array) -> Array:
        """Logarithm of the density, up to a constant, of points (n, 2)."""
        mrr, spread = self._parameters(points)
        load = np.array([trial.load_pps for trial in self.trials])
        duration = np.array([trial.duration_s for trial in self.trials])
        lost = np.array([float(trial.lost) for trial in self.trials])
        log_rate = FUNCTIONS[self.shape](load[None, :], mrr[:, None], spread[:, None])
        expected = np.exp(log_rate) * duration
        with np.errstate(invalid="ignore"):
            counted = np.where(lost > 0.0, lost * (log_rate + np.log(duration)), 0.0)
        prior = scipy.special.log_expit(points) + scipy.special.log_expit(-points)
        total = np.sum(counted - expected, axis=1) + np.sum(prior, axis=1)
        return np.where(np.isfinite(total), total, -1e300)

    def _peak(self) -> Array:
        """The most likely point."""
        starts = [] if self._best is None else [self._best]
        if len(self.trials) <= 8 or not starts:
            first = np.linspace(*LOG_MRR_START, START_GRID)
            second = np.linspace(*POWER_START, START_GRID)
            coarse = np.array([(x, y) for x in first for y in second])
            starts.append(coarse[int(np.argmax(self._log_posterior(coarse)))])
        found = []
        for start in starts:
            at = start
            for size in (0.3, 0.01):  # a second, smaller simplex leaves a narrow valley where the first stuck
                simplex = at + size * np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
                done = scipy.optimize.minimize(
                    lambda point: -float(self._log_posterior(point[None, :])[0]),
                    at,
                    method="Nelder-Mead",
                    options={"initial_simplex": simplex, "xatol": 1e-7, "fatol": 1e-3, "maxiter": 400},
                )
                at = np.asarray(done.x)
            found.append((float(done.fun), at))
        return min(found, key=lambda pair: pair[0])[1]

    def _grid(self) -> tuple[Array, Array]:
        """Points along the posterior's axes, with their share of it."""
        if not self.trials:
            raise ValueError("there is no trial to learn from")
        centre = self._best = self._peak()
        axes = np.diag([0.1, 0.5]) if self._axes is None else self._axes
        steps = np.linspace(-GRID_REACH, GRID_REACH, GRID_POINTS)
        unit = np.array([(x, y) for x in steps for y in steps])
        edge = np.any(np.abs(unit) > GRID_REACH * 0.999, axis=1)
        for _ in range(LAYINGS_MAX):
            points = centre + unit @ axes.T
            log_density = self._log_posterior(points)
            weights = np.exp(log_density - log_density.max())
            weights /= weights.sum()
            mean = weights @ unit
            spread = (unit - mean).T @ ((unit - mean) * weights[:, None])
            cell = (2.0 * GRID_REACH / (GRID_POINTS - 1)) ** 2
            values, vectors = np.linalg.eigh(spread + 0.25 * cell * np.eye(2))
            cut_off = float(weights[edge].sum()) > EDGE_MASS_MAX
            fits = bool(np.all(np.abs(np.sqrt(values) - 1.0) < FIT)) and float(np.abs(mean).max()) < 0.5
            if fits and not cut_off:
                break
            grow = 2.0 if cut_off else 1.0
            centre = centre + axes @ mean
            axes = axes @ (vectors * np.sqrt(values) * grow)
        self._axes = axes
        return points, weights
