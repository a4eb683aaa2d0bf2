"""Tables II to V and figure 7 of seed 001 from an experiment that has their columns: laid out as there, with
the paper's own figures beside for orientation. They are of another machine: a Xeon E5-2630 v3 at 2.4 GHz, 10
GbE links, Linux 5.2 and VPP 19.04."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from quiver_lab.report.cell_figures import interval
from quiver_lab.report.paper_tables import ABSENT, PaperTable, all_paper_tables, mean_kpps, relative
from quiver_lab.report.style import INK, MRR_COLOUR, NDR_COLOUR, QUIET, Spec, axis, layout
from quiver_lab.results.aggregate import CellRuns, Series
from quiver_lab.results.ratios import ratio_of

METRIC = "pdr_finder"
HEADEND_COLUMNS = ("IPv6", "IPv4", "H.Insert", "H.Enc.V6", "H.Enc.V4", "H.Enc.L2")
ENDPOINT_COLUMNS = ("End", "End.T", "End.X", "End.DT6", "End.DT4", "End.DX6", "End.DX4", "End.DX2")
COLUMNS = (*HEADEND_COLUMNS, *ENDPOINT_COLUMNS)
COLUMNS_MIN = 3
"""An experiment with so many of the paper's columns has its tables."""
LINUX, QUIVER = "Linux kernel", "Quiver"
"""Names of the forwarders, as experiments have them."""


@dataclass(frozen=True, slots=True)
class Published:
    """One table of the paper: PDR@0.5 % of each column; None: N/A."""

    name: str
    means_kpps: tuple[float | None, ...]
    cvs_percent: tuple[float | None, ...]
    ci95s_percent: tuple[float | None, ...]


LINUX_HEADEND = Published(
    "II",
    (1221.06, 1430.38, 1039.29, 978.133, 1029.35, 828.891),
    (0.023, 0.009, 0.016, 0.009, 0.081, 0.019),
    (0.014, 0.006, 0.01, 0.006, 0.051, 0.012),
)
LINUX_ENDPOINT = Published(
    "III",
    (900.52, 979.253, 123.133, 960.061, None, 122.761, 929.022, 1299.15),
    (0.059, 0.133, 1.12, 0.078, None, 0.572, 0.001, 0.0),
    (0.037, 0.084, 0.71, 0.049, None, 0.362, 0.0, 0.0),
)
VPP_HEADEND = Published(
    "IV",
    (11327.5, 12252.63, 7387.16, 7709.83, 8471.8, 8052.85),
    (0.005, 0.0, 0.002, 0.022, 0.02, 0.0),
    (0.003, 0.0, 0.001, 0.014, 0.013, 0.0),
)
VPP_ENDPOINT = Published("V", (6867.59,) * 8, (0.0,) * 8, (0.0,) * 8)

Cells = Mapping[str, CellRuns]
"""One forwarder's, by the paper's name of the column."""


def _column(cell: CellRuns) -> str:
    return cell.factors.get("scenario", "")


def by_forwarder(cells: Sequence[CellRuns]) -> dict[str, Cells]:
    """The cells that have a column in the paper; nothing when the experiment is another one."""
    found: dict[str, dict[str, CellRuns]] = {}
    for cell in cells:
        if _column(cell) in COLUMNS and cell.series(METRIC).displayed is not None:
            found.setdefault(cell.factors.get("forwarder", ""), {})[_column(cell)] = cell
    if len({column for members in found.values() for column in members}) < COLUMNS_MIN:
        return {}
    return dict(found)


def _cv(series: Series) -> str:
    """Of the runs that count: bounds have no spread."""
    summary = series.summary
    return relative(summary.coefficient_of_variation if summary and summary.count > 1 else None)


def _ci95(series: Series) -> str:
    summary = series.summary
    return relative(summary.relative_ci95 if summary else None)


def _runs(series: Series) -> str:
    return f"{len(series.kept)} of {series.runs}"


def _clocks(cell: CellRuns) -> str:
    value = cell.series("clocks").displayed
    return f"{value:,.0f}" if value is not None else ABSENT


def _each(cells: Cells, columns: Sequence[str], told: Callable[[CellRuns], str]) -> tuple[str, ...]:
    return tuple(told(cells[column]) if column in cells else ABSENT for column in columns)


def _measured(name: str, cells: Cells, columns: Sequence[str]) -> list[tuple[str, tuple[str, ...]]]:
    """Rows of one forwarder; clocks where it tells them."""

    def row(told: Callable[[Series], str]) -> tuple[str, ...]:
        return _each(cells, columns, lambda cell: told(cell.series(METRIC)))

    rows = [
        (f"{name}: mean [kpps]", row(mean_kpps)),
        ("CV", row(_cv)),
        ("CI95", row(_ci95)),
        ("Runs", row(_runs)),
    ]
    clocks = _each(cells, columns, _clocks)
    return rows if set(clocks) == {ABSENT} else [*rows, ("Clocks per packet", clocks)]


def _published(name: str, table: Published) -> list[tuple[str, tuple[str, ...]]]:
    def row(values: Sequence[float | None], unit: str) -> tuple[str, ...]:
        return tuple(ABSENT if value is None else f"{value:,.10g}{unit}" for value in values)

    return [
        (f"Paper, table {table.name}, {name}: mean [kpps]", row(table.means_kpps, "")),
        ("CV", row(table.cvs_percent, " %")),
        ("CI95", row(table.ci95s_percent, " %")),
    ]


def _over(one: Cells, other: Cells, columns: Sequence[str]) -> list[tuple[str, tuple[str, ...]]]:
    """How many times as much as another forwarder."""

    def ratio(column: str) -> str:
        if column not in one or column not in other:
            return ABSENT
        return ratio_of(one[column], other[column], METRIC).text() or ABSENT

    ratios = tuple(ratio(column) for column in columns)
    return [] if set(ratios) == {ABSENT} else [("Over the Linux kernel", ratios)]


LAYOUT = (
    ("Plain IP forwarding and SR policy headend", HEADEND_COLUMNS, LINUX_HEADEND, VPP_HEADEND),
    ("SRv6 endpoint behaviours", ENDPOINT_COLUMNS, LINUX_ENDPOINT, VPP_ENDPOINT),
)


def srperf_tables(cells: Sequence[CellRuns]) -> list[PaperTable]:
    """Tables II to V: in II and III the kernel, in IV and V Quiver in the place of VPP."""
    found = by_forwarder(cells)
    linux, quiver = found.get(LINUX, {}), found.get(QUIVER, {})
    tables = []
    for title, columns, of_linux, _ in LAYOUT:
        if linux:
            rows = [*_measured("Linux here", linux, columns), *_published("Linux 5.2", of_linux)]
            name = f"Table {of_linux.name}: {title[0].lower()}{title[1:]} in the Linux kernel"
            tables.append(PaperTable(name.replace("sRv6", "SRv6"), METRIC, columns, tuple(rows)))
    for title, columns, _, of_vpp in LAYOUT:
        if quiver:
            rows = [
                *_measured("Quiver here", quiver, columns),
                *_over(quiver, linux, columns),
                *_published("VPP 19.04", of_vpp),
            ]
            name = f"Table {of_vpp.name}: {title[0].lower()}{title[1:]}, Quiver in the place of VPP"
            tables.append(PaperTable(name.replace("sRv6", "SRv6"), METRIC, columns, tuple(rows)))
    return tables


def tables_of(cells: Sequence[CellRuns]) -> list[PaperTable]:
    """All tables of an experiment: the paper's where it has their columns, then every rate of every forwarder
    that is not in them."""
    paper = srperf_tables(cells)
    rest = all_paper_tables(cells)
    if paper:
        rest = [one for one in rest if one.metric != METRIC or not set(one.columns) <= set(COLUMNS)]
    return [*paper, *rest]


COLOURS = {LINUX: "#e07a3f", QUIVER: NDR_COLOUR}
PAPER_COLOURS = (("paper: Linux 5.2", "#f3cdb4"), ("paper: VPP 19.04", MRR_COLOUR))


def figure_7(cells: Sequence[CellRuns]) -> Spec | None:
    """All behaviours side by side: every forwarder of the experiment, and both of the paper."""
    found = by_forwarder(cells)
    if not found:
        return None
    bars: list[Spec] = []
    for name, members in found.items():
        series = [members[column].series(METRIC) if column in members else None for column in COLUMNS]
        spread = [interval(one) if one else 0.0 for one in series]
        values = [one.displayed / 1e6 if one and one.displayed else None for one in series]
        hatched = ["/" if one and one.value is None else "" for one in series]
        bar = _bar(name, COLOURS.get(name, QUIET), values)
        bar["marker"]["pattern"] = {
            "shape": hatched, "fillmode": "overlay", "fgcolor": "rgba(255,255,255,.55)", "size": 6,
        }  # fmt: skip
        bar["error_y"] = {"type": "data", "array": spread, "color": INK, "thickness": 1, "width": 3}
        bars.append(bar)
    published = ((LINUX_HEADEND, LINUX_ENDPOINT), (VPP_HEADEND, VPP_ENDPOINT))
    for (name, colour), tables in zip(PAPER_COLOURS, published, strict=True):
        means = [mean for table in tables for mean in table.means_kpps]
        bars.append(_bar(name, colour, [mean / 1e3 if mean else None for mean in means]))
    return {
        "data": bars,
        "layout": layout(
            430, barmode="group", bargap=0.2, bargroupgap=0.04,
            xaxis=axis(showgrid=False, tickfont={"size": 12, "color": INK}, type="category", tickangle=-35),
            yaxis=axis("PDR@0.5 %, Mpps", rangemode="nonnegative"),
        ),
    }  # fmt: skip


def _bar(name: str, colour: str, values: list[float | None]) -> Spec:
    return {
        "type": "bar", "name": name, "x": list(COLUMNS), "y": values, "marker": {"color": colour},
        "hovertemplate": f"<b>%{{x}}</b><br>{name} %{{y:.3f}} Mpps<extra></extra>",
    }  # fmt: skip


def figure_4_cells(cells: Sequence[CellRuns]) -> list[CellRuns]:
    """Those of figure 4: plain IPv6 forwarding."""
    return [members["IPv6"] for members in by_forwarder(cells).values() if "IPv6" in members]
