"""Figures as a reader wants to see them."""

from __future__ import annotations


def mpps(rate_pps: float | None, digits: int = 2) -> str:
    """Millions of frames a second, or a dash."""
    return "–" if rate_pps is None else f"{rate_pps / 1e6:.{digits}f}"


def micros(time_ns: float | None) -> str:
    """Microseconds with three significant figures, or a dash."""
    if time_ns is None:
        return "–"
    value = time_ns / 1e3
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def percent(share: float, digits: int = 1) -> str:
    """A share in per cent."""
    return f"{100.0 * share:.{digits}f} %"


def seconds(time_s: float) -> str:
    """A time as one would say it."""
    if time_s < 60:
        return f"{time_s:.1f} s"
    if time_s < 3600:
        return f"{int(time_s // 60)} min {int(time_s % 60):02d} s"
    return f"{int(time_s // 3600)} h {int(time_s % 3600 // 60):02d} min"
