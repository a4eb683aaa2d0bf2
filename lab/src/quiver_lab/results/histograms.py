"""HDR histograms as HdrHistogram prints them: base64 of its compressed second version."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hdrh.histogram import HdrHistogram

HIGHEST_NS = 60_000_000_000
DIGITS = 3
PERCENTILES: tuple[float, ...] = (
    0.0, 25.0, 50.0, 75.0, 90.0, 95.0, 97.5, 99.0, 99.5, 99.75, 99.9, 99.95, 99.975, 99.99, 99.995, 99.999,
    99.9999, 99.99999,
)  # fmt: skip


class HistogramError(ValueError):
    """Text that is no histogram."""


@dataclass(frozen=True, slots=True)
class Point:
    """So many per cent of the frames took at most so long."""

    percentile: float
    time_ns: float

    @property
    def one_in(self) -> float:
        """One frame in so many took longer: 100 for the 99th percentile."""
        return 100.0 / max(100.0 - self.percentile, 1e-9)


def decode(text: str) -> HdrHistogram:
    """A histogram from its text, or `HistogramError`."""
    try:
        return HdrHistogram.decode(text)
    except Exception as error:  # the library has no error of its own: struct's, zlib's, ctypes' come out
        raise HistogramError(f"not an HDR histogram: {error}") from error


def curve(text: str) -> list[Point]:
    """Time by percentile, as far as the number of frames says anything."""
    histogram = decode(text)
    count = histogram.get_total_count()
    points = [
        Point(percentile, float(histogram.get_value_at_percentile(percentile)))
        for percentile in PERCENTILES
        if percentile == 0.0 or count * (100.0 - percentile) >= 100.0
    ]
    if count and (not points or points[-1].percentile < 100.0):
        points.append(Point(100.0 - 100.0 / (count + 1), float(histogram.get_max_value())))
    return points


def encode(times_ns: Sequence[int]) -> str:
    """A histogram of these times, as text."""
    histogram = HdrHistogram(1, HIGHEST_NS, DIGITS)
    for time_ns in times_ns:
        histogram.record_value(min(max(time_ns, 1), HIGHEST_NS))
    return str(histogram.encode().decode())


def added(texts: Sequence[str]) -> str:
    """Several histograms as one."""
    total = HdrHistogram(1, HIGHEST_NS, DIGITS)
    for text in texts:
        total.add(decode(text))
    return str(total.encode().decode())
