"""How results stand to other results, cell by cell: of two files, of a repetition and its original, of two
cells that took turns in one run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.box import SIMPLE_HEAD
from rich.table import Table

from quiver_lab.experiments.experiment import TWIN
from quiver_lab.results.aggregate import METRICS, CellRuns, annotation_kinds_about, cells
from quiver_lab.results.model import HostNoise, Results
from quiver_lab.results.ratios import Ratio, ratio_of
from quiver_lab.statistics.comparison import (
    ROUNDS_MIN,
    AbbaRound,
    Better,
    Comparison,
    compare_independent,
    compare_rounds,
    noise_floor,
)

COMPARED = ("mrr", "ndr", "pdr", "pdr_finder", "clocks", "p50")


@dataclass(frozen=True, slots=True)
class CellComparison:
    """One figure of one cell, on both sides."""

    cell: str
    metric: str
    first: str
    second: str
    """Means of the runs that count, in words: bounds and marked figures as every table has them."""
    ratio: Ratio
    """The second over the first."""
    note: str
    """What was left out."""
    comparison: Comparison | None
    """Nothing when a side has no run that counts twice: then there is a ratio, and no certainty."""


def compare_results(
    first: Results, second: Results, names: tuple[str, str] = ("A", "B")
) -> list[CellComparison]:
    """Cells that both have, and every figure that both have of them. They were not interleaved: whatever
    else changed between them is in the effect."""
    theirs = {cell.key: cell for cell in cells(second)}
    by_title = {(cell.title, cell.runs[0].name): cell for cell in theirs.values()}
    found = []
    for cell in (cell for cell in cells(first) if not cell.is_twin):
        other = theirs.get(cell.key) or by_title.get((cell.title, cell.runs[0].name))
        if other is None:
            continue
        for metric in COMPARED:
            standing = _independent(cell, other, metric, names, known_noise(metric, first, second))
            if standing:
                found.append(standing)
    return found


def _independent(
    one: CellRuns, other: CellRuns, metric: str, names: tuple[str, str], floor: float | None
) -> CellComparison | None:
    a, b = one.series(metric), other.series(metric)
    if not a.displayed or not b.displayed:
        return None
    notes = [f"{name}: {series.note}" for name, series in zip(names, (a, b), strict=True) if series.note]
    comparison = None
    if len(a.kept) > 1 and len(b.kept) > 1:
        better: Better = "more" if METRICS[metric].more_is_better else "less"
        comparison = compare_independent(a.kept, b.kept, names, better, floor)
    ratio = ratio_of(other, one, metric)
    return CellComparison(one.title, metric, a.text(), b.text(), ratio, "; ".join(notes), comparison)


def abba_rounds(first: CellRuns, second: CellRuns, metric: str) -> list[AbbaRound]:
    """Two cells that took turns: odd repetitions began with the first, even ones with the second. A round
    of which a run is missing or set apart is left out whole."""
    one, other = _by_repetition(first, metric), _by_repetition(second, metric)
    rounds = []
    for number in sorted(one):
        even = number + 1
        if number % 2 and all(key in side for key in (number, even) for side in (one, other)):
            rounds.append(AbbaRound(one[number], other[number], other[even], one[even]))
    return rounds


def _by_repetition(cell: CellRuns, metric: str) -> dict[int, float]:
    found = {}
    for run in cell.runs:
        value = METRICS[metric].get(run)
        if value and value > 0.0 and not annotation_kinds_about(run, metric):
            found[run.repetition] = value
    return found


def host_noise(results: Results) -> list[HostNoise]:
    """The noise floor of every figure, from the cell that was measured against itself; nothing where there
    is none, or too few of its rounds count."""
    found = cells(results)
    twin = next((cell for cell in found if cell.is_twin), None)
    if twin is None:
        return []
    original = next(cell for cell in found if cell.key + TWIN == twin.key)
    told = []
    for metric in COMPARED:
        rounds = abba_rounds(original, twin, metric)
        if len(rounds) < ROUNDS_MIN:
            continue
        floor = noise_floor(rounds)
        told.append(
            HostNoise(
                metric=metric,
                relative=floor.relative,
                coefficient_of_variation=floor.coefficient_of_variation,
                bias=floor.bias,
                rounds=floor.rounds,
                left_out=len(original.runs) // 2 - floor.rounds,
            )
        )
    return told


def known_noise(metric: str, *measured: Results) -> float | None:
    """The largest noise floor of a figure that any of these results has."""
    return max(
        (one.relative for told in measured for one in told.noise if one.metric == metric), default=None
    )


def interleaved(results: Results) -> list[CellComparison]:
    """The two cells of a run in which they took turns, against the noise floor of the same run."""
    found = [cell for cell in cells(results) if not cell.is_twin]
    if len(found) == 1:
        return []
    if len(found) != 2:
        raise ValueError(
            f"an A/B comparison has two cells, and this experiment has {len(found)}: "
            "a matrix with one key of two values makes two"
        )
    first, second = found
    names = (first.title, second.title)
    comparisons = []
    for metric in COMPARED:
        a, b = first.series(metric), second.series(metric)
        if not a.displayed or not b.displayed:
            continue
        rounds = abba_rounds(first, second, metric)
        better: Better = "more" if METRICS[metric].more_is_better else "less"
        floor = known_noise(metric, results)
        comparison = compare_rounds(rounds, names, better, floor) if rounds else None
        wanted = len(first.runs) // 2
        told = [f"{cell.title}: {one.note}" for cell, one in ((first, a), (second, b)) if one.note]
        note = "" if len(rounds) == wanted else f"{len(rounds)} of {wanted} rounds count ({'; '.join(told)})"
        title, ratio = f"{second.title} over {first.title}", ratio_of(second, first, metric)
        comparisons.append(CellComparison(title, metric, a.text(), b.text(), ratio, note, comparison))
    return comparisons


def _cells_only_in(one: Results, other: Results) -> list[str]:
    known = {cell.key for cell in cells(other)} | {cell.title for cell in cells(other)}
    return [cell.title for cell in cells(one) if cell.key not in known and cell.title not in known]


def unmatched(first: Results, second: Results, names: tuple[str, str]) -> list[str]:
    """Sentences about cells that only one side has."""
    lonely = ((names[0], _cells_only_in(first, second)), (names[1], _cells_only_in(second, first)))
    return [f"only in {name}: {', '.join(titles)}" for name, titles in lonely if titles]


def different_hosts(first: Results, second: Results) -> str | None:
    """A sentence, when the machines are not the same."""
    one, other = first.host, second.host
    if (one.cpu, one.cpus, one.kernel) == (other.cpu, other.cpus, other.kernel):
        return None
    return (
        f"the machines differ: {one.cpu}, {one.cpus} CPUs, Linux {one.kernel} and {other.cpu}, "
        f"{other.cpus} CPUs, Linux {other.kernel}; compare ratios between cells, not rates"
    )


def table(comparisons: Sequence[CellComparison], names: tuple[str, str]) -> Table:
    """For a terminal; `sentences` say the rest."""
    result = Table(header_style="bold", box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    result.add_column("Cell", overflow="fold")
    for title in ("figure", *names, "B / A", "p"):
        result.add_column(title, justify="right", no_wrap=True)
    result.add_column("verdict", overflow="fold")
    for one in comparisons:
        certain = one.comparison
        verdict = certain.outcome if certain else "too few runs that count"
        result.add_row(
            one.cell, METRICS[one.metric].title, one.first, one.second, one.ratio.text(3) or "–",
            f"{certain.p_value:.3f}" if certain else "–", verdict,
        )  # fmt: skip
    return result


def sentences(comparisons: Sequence[CellComparison]) -> list[str]:
    """What the table has no room for: how large each difference is and how sure, and what was left out."""
    told = []
    for one in comparisons:
        certain = one.comparison
        verdict = certain.verdict if certain and certain.outcome != "too few rounds" else ""
        if words := " ".join(part for part in (verdict, f"({one.note})" if one.note else "") if part):
            told.append(f"{one.cell}, {METRICS[one.metric].title}: {words}")
    if any(one.comparison and one.comparison.outcome == "too few rounds" for one in comparisons):
        told.append(f"too few rounds: {ROUNDS_MIN} are the fewest that can be sure")
    return told


def noise_table(told: Sequence[HostNoise]) -> Table:
    """The noise floor for a terminal."""
    result = Table(header_style="bold", box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    result.add_column("A against A", overflow="fold")
    for title in ("noise floor", "CV", "measured", "rounds"):
        result.add_column(title, justify="right", no_wrap=True)
    for one in told:
        result.add_row(
            METRICS[one.metric].title, f"{100 * one.relative:.2f} %",
            f"{100 * one.coefficient_of_variation:.2f} %", f"{100 * one.bias:+.2f} %", str(one.rounds),
        )  # fmt: skip
    result.caption = "a difference up to the noise floor is no finding on this host"
    return result
