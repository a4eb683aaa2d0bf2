"""Figures as PNG, by matplotlib: the same specifications that the page gives to Plotly, so that a picture in
a paper and the page show the same. Only what our figures use is known here."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from typing import Any, Literal

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter

from quiver_lab.report.style import GRID, INK, NODE_COLOURS, QUIET, Spec

WIDTH_PX, DPI, SCALE = 1100, 100, 2
SYMBOLS = {"circle": "o", "diamond": "D", "square": "s", "x": "x", "x-thin-open": "x"}
DASHES = {"dot": ":", "dash": "--", "solid": "-"}
NOT_DRAWN = re.compile(r"rgba\([^)]*,\s*0\)")
TAG = re.compile(r"</?b>|</?i>")
GROUP_WIDTH = 0.76
FROM_ZERO = ("tozero", "nonnegative")
HATCH = "////"
LEGEND_COLUMNS, LEGEND_COLUMNS_LONG, SHORT_LETTERS = 8, 6, 12
"""Names in a row of a legend: more of those that are short, for there is room for two rows."""
PATCH = {"facecolor": "white", "alpha": 0.75, "edgecolor": "none", "pad": 0.6}
"""Behind a number that may lie on a neighbour's bar."""

LABELS_FLAT_MAX = 110
"""Letters of all labels of an axis that have room beside each other when they are turned a little."""


def figure_png(spec: Spec, title: str) -> bytes:
    """A figure as the bytes of a PNG file."""
    outline = spec["layout"]
    height = outline.get("height", 400) + 40
    with mpl.rc_context({"font.family": "sans-serif", "font.size": 9, "text.color": INK}):
        figure = Figure(figsize=(WIDTH_PX / DPI, height / DPI), dpi=DPI)
        FigureCanvasAgg(figure)
        panels = _Panels(figure, outline)
        for kind, draw in (("bar", _bars), ("box", _boxes), ("scatter", _scatter)):
            draw(panels, [trace for trace in spec["data"] if trace["type"] == kind], outline)
        panels.finish(title)
        buffer = io.BytesIO()
        # As large as it must be: names that stand slanted below an axis are longer than any margin.
        figure.savefig(
            buffer, format="png", dpi=DPI * SCALE, facecolor="white", bbox_inches="tight", pad_inches=0.15
        )
    return buffer.getvalue()


class _Panels:
    """The axes of a figure, by Plotly's names: x and y, x2 and y2, …"""

    BOTTOM, TOP, LEFT, RIGHT = 0.16, 0.84, 0.09, 0.98

    def __init__(self, figure: Figure, outline: Spec) -> None:
        self._figure = figure
        self._outline = outline
        self._axes: dict[str, Axes] = {}
        self._legend: dict[str, Any] = {}
        self.rows: dict[str, int] = {}
        """Where the bars of a figure lie that is drawn sideways."""

    def of(self, trace: Spec) -> Axes:
        """The axes that a trace is drawn in."""
        return self.named(trace.get("xaxis", "x"), trace.get("yaxis", "y"))

    def named(self, x_name: str, y_name: str) -> Axes:
        """The same by name."""
        key = x_name + y_name
        if key not in self._axes:
            across = self._outline.get("xaxis" + x_name[1:], {})
            up = self._outline.get("yaxis" + y_name[1:], {})
            left, right = across.get("domain", [0.0, 1.0])
            low, high = up.get("domain", [0.0, 1.0])
            width, height = self.RIGHT - self.LEFT, self.TOP - self.BOTTOM
            box = (
                self.LEFT + left * width,
                self.BOTTOM + low * height,
                (right - left) * width,
                (high - low) * height,
            )
            axes = self._figure.add_axes(box)
            titled = across.get("anchor", y_name) == y_name
            _style(axes, across if titled else {**across, "title": {}}, up)
            self._axes[key] = axes
        return self._axes[key]

    def legend(self, name: str, handle: Any) -> None:
        """One entry for each name."""
        self._legend.setdefault(name, handle)

    def finish(self, title: str) -> None:
        """Title, notes, lines across, and the legend above."""
        for shape in self._outline.get("shapes", ()):
            _shape(self.named(_name(shape["xref"]), _name(shape["yref"])), shape)
        for note in self._outline.get("annotations", ()):
            self._note(note)
        height = self._figure.get_figheight() * DPI
        self._figure.text(
            self.LEFT, 1 - 14 / height, title, fontsize=13, fontweight="bold", va="top", color=INK
        )
        if self._legend:
            names = list(self._legend)
            short = max(map(len, names)) <= SHORT_LETTERS
            columns = min(LEGEND_COLUMNS if short else LEGEND_COLUMNS_LONG, len(names))
            self._figure.legend(
                [self._legend[name] for name in names], names, loc="upper left", frameon=False,
                bbox_to_anchor=(self.LEFT - 0.01, 1 - 34 / height), ncols=columns, fontsize=8,
            )  # fmt: skip

    def _note(self, note: Spec) -> None:
        text, bold = TAG.sub("", note["text"]), "<b>" in note["text"]
        weight = "bold" if bold else "normal"
        if note.get("xref") == "paper":
            x = self.LEFT + note["x"] * (self.RIGHT - self.LEFT)
            y = self.BOTTOM + note["y"] * (self.TOP - self.BOTTOM)
            self._figure.text(x, y + 0.01, text, fontsize=9, fontweight=weight, color=INK)
        else:
            axes = self.named("x", "y")
            axes.annotate(
                text, (note["x"], self.rows.get(note["y"], note["y"])), xytext=(5, 0),
                textcoords="offset points", va="center", fontweight=weight, color=INK,
            )  # fmt: skip


def _name(reference: str) -> str:
    return reference.partition(" ")[0]


def _shape(axes: Axes, shape: Spec) -> None:
    line = shape["line"]
    style = {
        "color": line["color"], "linewidth": line["width"], "linestyle": DASHES[line.get("dash", "solid")]
    }  # fmt: skip
    if shape["x0"] == shape["x1"]:
        axes.axvline(shape["x0"], **style)
    else:
        axes.axhline(shape["y0"], **style)


def _style(axes: Axes, across: Spec, up: Spec) -> None:
    axes.set_axisbelow(True)
    axes.grid(visible=True, color=GRID, linewidth=0.7)
    for spine in axes.spines.values():
        spine.set_color("#c8ced8")
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    sides: tuple[tuple[Literal["x", "y"], Spec], ...] = (("x", across), ("y", up))
    for which, spec in sides:
        one = axes.xaxis if which == "x" else axes.yaxis
        one.set_label_text(spec.get("title", {}).get("text", ""), color=QUIET)
        axes.tick_params(axis=which, colors=QUIET, labelsize=8)
        if spec.get("showgrid") is False:
            axes.grid(visible=False, axis=which)
        if spec.get("type") == "log":
            (axes.set_xscale if which == "x" else axes.set_yscale)("log")
            one.set_major_formatter(FuncFormatter(lambda value, _: _short(value)))
            one.set_minor_formatter(NullFormatter())
        if "tickvals" in spec:
            # Ticks outside of what is drawn would widen it.
            low, high = one.get_view_interval()
            ticks = zip(spec["tickvals"], spec["ticktext"], strict=True)
            shown = [(at, text) for at, text in ticks if "range" in spec or low <= at <= high]
            one.set_ticks([at for at, _ in shown], [text for _, text in shown])
            one.set_minor_formatter(NullFormatter())
        if "range" in spec:
            low, high = (10**end if spec.get("type") == "log" else end for end in spec["range"])
            (axes.set_xlim if which == "x" else axes.set_ylim)(low, high)
    if up.get("autorange") == "reversed":
        axes.invert_yaxis()


def _short(value: float) -> str:
    """A number of an axis as the page has it: 10k, 1M."""
    for unit, letter in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if value >= unit:
            return f"{value / (1e3 if letter == 'k' else unit):g}{letter}"
    return f"{value:g}"


def _categories(traces: Sequence[Spec], key: str) -> list[str]:
    return list(dict.fromkeys(value for trace in traces for value in trace[key]))


def _grow_from_zero(axes: Axes, outline: Spec) -> None:
    if outline.get("yaxis", {}).get("rangemode") in FROM_ZERO:
        axes.set_ylim(bottom=0)


def _label(axes: Axes, names: Sequence[str]) -> None:
    longest = max((len(name) for name in names), default=0)
    slanted = len(names) > 6 or longest > 18
    angle = 0 if not slanted else 18 if len(names) * longest <= LABELS_FLAT_MAX else 35
    axes.set_xticks(range(len(names)), names, rotation=angle, ha="right" if slanted else "center")


def _bars(panels: _Panels, traces: Sequence[Spec], outline: Spec) -> None:
    if not traces:
        return
    axes = panels.of(traces[0])
    if traces[0].get("orientation") == "h":
        names = _categories(traces, "y")
        ends = [0.0] * len(names)
        for trace in traces:
            widths = dict(zip(trace["y"], trace["x"], strict=True))
            values = [widths.get(name, 0.0) for name in names]
            handle = axes.barh(
                range(len(names)), values, left=list(ends), height=0.62, color=trace["marker"]["color"]
            )
            panels.legend(trace["name"], handle)
            ends = [end + value for end, value in zip(ends, values, strict=True)]
        axes.set_yticks(range(len(names)), names)
        panels.rows = {name: place for place, name in enumerate(names)}
        axes.set_xlim(0, max(ends, default=1.0) * 1.1)
        return
    names = _categories(traces, "x")
    width = GROUP_WIDTH / len(traces)
    for number, trace in enumerate(traces):
        at = dict(zip(trace["x"], trace["y"], strict=True))
        places = [place - GROUP_WIDTH / 2 + width * (number + 0.5) for place in range(len(names))]
        errors = trace.get("error_y", {})
        plus = errors.get("array")
        minus = errors.get("arrayminus", plus)
        heights = [at.get(name) or 0.0 for name in names]
        handle = axes.bar(places, heights, width * 0.92, color=trace["marker"]["color"])
        panels.legend(trace["name"], handle)
        hatched = trace["marker"].get("pattern", {}).get("shape", ())
        for patch, shape in zip(handle.patches, hatched, strict=False):
            if shape:
                patch.set_hatch(HATCH)
                patch.set_edgecolor("white")
                patch.set_linewidth(0)
        tops = heights
        if plus and minus and len(plus) == len(heights):
            _whiskers(axes, list(zip(places, heights, minus, plus, strict=True)))
            tops = [height + more for height, more in zip(heights, plus, strict=True)]
        words: dict[str, Any] = {"ha": "center", "va": "bottom", "fontsize": 7, "color": INK}
        told = dict(zip(trace["x"], trace.get("text", ()), strict=False))
        for name, place, height, top in zip(names, places, heights, tops, strict=True):
            if height or top:
                axes.text(place, top, told.get(name) or f"{height:.2f}", bbox=PATCH, **words)
    _label(axes, names)
    _grow_from_zero(axes, outline)


def _whiskers(axes: Axes, bars: Sequence[tuple[float, float, float, float]]) -> None:
    """Of bars whose interval is known."""
    known = [bar for bar in bars if bar[2] or bar[3]]
    if known:
        places, heights, minus, plus = (list(column) for column in zip(*known, strict=True))
        spread = [minus, plus]
        axes.errorbar(places, heights, yerr=spread, fmt="none", ecolor=INK, elinewidth=1, capsize=2)


def _boxes(panels: _Panels, traces: Sequence[Spec], _outline: Spec) -> None:
    for plot in dict.fromkeys(trace["xaxis"] for trace in traces):
        _boxes_in(panels, [trace for trace in traces if trace["xaxis"] == plot])


def _boxes_in(panels: _Panels, traces: Sequence[Spec]) -> None:
    axes = panels.of(traces[0])
    names = _categories(traces, "x")
    groups = list(dict.fromkeys(trace["offsetgroup"] for trace in traces))
    width = GROUP_WIDTH / len(groups)
    for trace in traces:
        offset = -GROUP_WIDTH / 2 + width * (groups.index(trace["offsetgroup"]) + 0.5)
        shown = NOT_DRAWN.fullmatch(trace["line"]["color"]) is None
        colour = trace["marker"]["color"]
        for place, name in enumerate(names):
            values = [y for x, y in zip(trace["x"], trace["y"], strict=True) if x == name]
            if not values:
                continue
            if shown:
                axes.boxplot(
                    values, positions=[place + offset], widths=width * 0.8, manage_ticks=False,
                    showfliers=False, boxprops={"color": colour}, whiskerprops={"color": colour},
                    capprops={"color": colour}, medianprops={"color": colour, "linewidth": 2},
                )  # fmt: skip
            marker = SYMBOLS[trace["marker"].get("symbol", "circle")]
            [handle] = axes.plot([place + offset] * len(values), values, marker, color=colour, markersize=3)
            panels.legend(trace["name"], handle)
    _label(axes, names)


def _scatter(panels: _Panels, traces: Sequence[Spec], outline: Spec) -> None:
    used = set()
    for number, trace in enumerate(traces):
        axes = panels.of(trace)
        used.add(axes)
        marker = trace.get("marker", {})
        line = trace.get("line", {})
        colour = line.get("color") or _one(marker.get("color")) or NODE_COLOURS[number % len(NODE_COLOURS)]
        style = DASHES[line.get("dash", "solid")] if "lines" in trace["mode"] else ""
        symbol = (
            SYMBOLS.get(_one(marker.get("symbol")) or "circle", "o") if "markers" in trace["mode"] else ""
        )
        xs = [float("nan") if x is None else x for x in trace["x"]]
        ys = [float("nan") if y is None else y for y in trace["y"]]
        [handle] = axes.plot(
            xs, ys, linestyle=style or "none", marker=symbol or None, color=colour,
            markersize=marker.get("size", 6) * 0.6, linewidth=line.get("width", 1.5),
        )  # fmt: skip
        colours = marker.get("color")
        if isinstance(colours, list):
            handle.set_visible(False)
            axes.scatter(xs, ys, c=colours, marker=symbol, s=18, zorder=3)
        errors = trace.get("error_y", {}).get("array")
        if errors:
            axes.errorbar(xs, ys, yerr=errors, fmt="none", ecolor=colour, elinewidth=1, capsize=2)
        if trace.get("showlegend", True):
            panels.legend(trace["name"], handle)
        if "text" in trace["mode"]:
            for x, y, words in zip(xs, ys, trace["text"], strict=True):
                axes.text(x, y, words, ha="center", va="bottom", fontsize=7, color=colour)
    if len(used) == 1:
        _grow_from_zero(used.pop(), outline)


def _one(value: Any) -> str | None:
    return value[0] if isinstance(value, list) and value else value if isinstance(value, str) else None
