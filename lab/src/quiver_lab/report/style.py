"""Colours and the parts that all figures share. Figures are plain Plotly specifications."""

from __future__ import annotations

from typing import Any

Spec = dict[str, Any]

INK = "#1c2430"
QUIET = "#667085"
GRID = "#e6e9ef"
FONT = 'Inter, "Segoe UI", system-ui, -apple-system, "Helvetica Neue", Arial, sans-serif'

MRR_COLOUR = "#b9c6d8"
PDR_COLOUR = "#3b82c4"
NDR_COLOUR = "#17457a"
GOOD, PARTIAL, BAD = "#1a936f", "#e0a030", "#cc4b37"
LOAD_COLOURS = ("#9ecae1", "#3b82c4", "#17457a", "#0b2545", "#e0a030", "#cc4b37")
"""From the lightest load to the heaviest: CSIT's six."""

SCENARIO_COLOURS = (
    "#17457a", "#e07a3f", "#1a936f", "#9b5de5", "#cc4b37", "#3b82c4", "#8a6d3b", "#5f6c7b",
)  # fmt: skip
NODE_COLOURS = (
    "#17457a", "#3b82c4", "#7fb3dd", "#1a936f", "#7cc6a4", "#e0a030", "#e07a3f", "#cc4b37", "#9b5de5",
    "#c9b1f0", "#8a6d3b", "#5f6c7b",
)  # fmt: skip


GAPS_SHARE_MAX = 0.4
"""Of a figure's height, however many rows of plots it has."""


def axis(title: str = "", **more: Any) -> Spec:
    """An axis with a thin grid."""
    return {
        "title": {"text": title, "font": {"size": 12, "color": QUIET}, "standoff": 8},
        "gridcolor": GRID,
        "zeroline": False,
        "linecolor": "#c8ced8",
        "tickfont": {"size": 11, "color": QUIET},
        "automargin": True,
        **more,
    }


def decades(title: str = "", **more: Any) -> Spec:
    """A logarithmic axis that says 1, 2, 5, 10, 20, 50 and so on: plotly's own shows bare digits between
    powers of ten."""
    values = [digit * 10.0**power for power in range(-3, 8) for digit in (1, 2, 5)]
    texts = [f"{value:,.0f}" if value >= 1.0 else f"{value:g}" for value in values]
    return axis(title, type="log", tickvals=values, ticktext=texts, **more)


def layout(height: int, **more: Any) -> Spec:
    """A figure's frame."""
    return {
        "height": height,
        "font": {"family": FONT, "size": 12, "color": INK},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "margin": {"l": 56, "r": 16, "t": 24, "b": 44},
        "hoverlabel": {"font": {"family": FONT, "size": 12}},
        "modebar": {
            "bgcolor": "rgba(0,0,0,0)",
            "color": "#c0c7d2",
            "activecolor": NDR_COLOUR,
            "orientation": "v",
        },
        "legend": {"orientation": "h", "y": 1.0, "yanchor": "bottom", "x": 0, "font": {"size": 12}},
        **more,
    }


def grid(count: int, columns: int, gap: float = 0.055, row_gap: float = 0.2) -> list[tuple[Spec, Spec]]:
    """Domains of small multiples: (x, y) for each, row by row from the top."""
    columns = max(1, min(columns, count))
    rows = -(-count // columns)
    row_gap = min(row_gap, GAPS_SHARE_MAX / max(1, rows - 1))
    width = (1.0 - gap * (columns - 1)) / columns
    tall = (1.0 - row_gap * (rows - 1)) / rows
    cells = []
    for index in range(count):
        row, column = divmod(index, columns)
        left, top = column * (width + gap), 1.0 - row * (tall + row_gap)
        cells.append(
            ({"domain": [left, min(1.0, left + width)]}, {"domain": [max(0.0, top - tall), min(1.0, top)]})
        )
    return cells


def heading(text: str, x_domain: list[float], y_domain: list[float]) -> Spec:
    """The title of one of several small plots."""
    return {
        "text": f"<b>{text}</b>",
        "x": x_domain[0],
        "y": y_domain[1],
        "xref": "paper",
        "yref": "paper",
        "xanchor": "left",
        "yanchor": "bottom",
        "showarrow": False,
        "font": {"size": 12.5, "color": INK},
        "yshift": 4,
    }
