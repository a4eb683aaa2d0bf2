"""One shape for every fitted model: formula, parameters, the points that were measured, and the curve."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy

CURVE_POINTS = 120
Array = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Parameter:
    """A number that the fit found, or that the model was given."""

    name: str
    value: float
    unit: str
    about: str
    stderr: float | None = None
    """None: given, or as many parameters as points."""


@dataclass(frozen=True, slots=True)
class Line:
    """Something to draw: a point for each x."""

    x: tuple[float, ...]
    y: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Fit:
    """A model beside its measurement."""

    model: str
    formula: str
    """As a reader would write it, with the parameters' names."""
    parameters: tuple[Parameter, ...]
    measured: Line
    predicted: tuple[float, ...]
    """The model at each measured x."""
    curve: Line
    """The model in between, for drawing."""
    x_label: str
    y_label: str
    logarithmic_x: bool = False

    @property
    def errors(self) -> tuple[float, ...]:
        """Predicted over measured less 1, for each point."""
        pairs = zip(self.predicted, self.measured.y, strict=True)
        return tuple(predicted / measured - 1.0 for predicted, measured in pairs)

    @property
    def worst_error(self) -> float:
        """The largest of them, without its sign."""
        return max(abs(error) for error in self.errors)

    @property
    def r_squared(self) -> float:
        """Share of the variance that the model explains; 1 where nothing varies and nothing is wrong."""
        measured = np.array(self.measured.y)
        left = float(np.sum((measured - np.array(self.predicted)) ** 2))
        total = float(np.sum((measured - measured.mean()) ** 2))
        return 1.0 - left / total if total > 0.0 else float(left == 0.0)

    def parameter(self, name: str) -> float:
        """A parameter's value."""
        return next(one.value for one in self.parameters if one.name == name)


class ModelError(ValueError):
    """These points cannot be fitted; the message says why."""


def points(pairs: Sequence[tuple[float, float]], least: int) -> tuple[Array, Array]:
    """Points in order of x, checked: positive, and enough of them."""
    if len({x for x, _ in pairs}) < least:
        raise ModelError(f"the model needs points at {least} different places, not {len(pairs)}")
    if any(not (np.isfinite(x) and np.isfinite(y) and x > 0.0 and y > 0.0) for x, y in pairs):
        raise ModelError("points must be positive numbers: leave out what failed")
    ordered = sorted(pairs)
    return np.array([x for x, _ in ordered]), np.array([y for _, y in ordered])


def least_squares(
    function: Callable[..., Array],
    x: Array,
    y: Array,
    start: Sequence[float],
    bounds: tuple[Sequence[float], Sequence[float]],
) -> tuple[list[float], list[float | None]]:
    """Parameters with the smallest relative errors, and their standard errors."""
    try:
        found, covariance = scipy.optimize.curve_fit(
            function, x, y, p0=start, bounds=bounds, sigma=y, x_scale=np.maximum(np.abs(start), 1e-12)
        )
    except (RuntimeError, ValueError) as error:
        raise ModelError(f"the model does not fit these points: {error}") from error
    spread = np.sqrt(np.diag(covariance))
    free = len(x) > len(start)
    return [float(value) for value in found], [
        float(one) if free and np.isfinite(one) else None for one in spread
    ]


def line(x: Array, y: Array) -> Line:
    """Arrays as something that can be stored."""
    return Line(tuple(float(value) for value in x), tuple(float(value) for value in y))


def span(x: Array, *, logarithmic: bool = False) -> Array:
    """Where a curve is drawn: from the first point to the last."""
    low, high = float(x[0]), float(x[-1])
    return np.geomspace(low, high, CURVE_POINTS) if logarithmic else np.linspace(low, high, CURVE_POINTS)
