"""Writes a report: the page, and every figure and table beside it as files that a paper can take."""

from __future__ import annotations

from pathlib import Path

from quiver_lab.report.data import as_csv, figure_csv
from quiver_lab.report.images import figure_png
from quiver_lab.report.page import figures_of, render
from quiver_lab.report.srperf import tables_of
from quiver_lab.results.aggregate import cells
from quiver_lab.results.model import Results, write_whole

FIGURES = "figures"


def write_report(results_path: Path, page_path: Path) -> list[Path]:
    """Read a results file; write the page, and beside it `figures/` with a PNG and a CSV of each figure and
    a CSV and a text of each table. The files that were written, the page first."""
    results = Results.read(results_path)
    write_whole(page_path, render(results))
    return [page_path, *write_figures(results, page_path.parent / FIGURES)]


def write_figures(results: Results, folder: Path) -> list[Path]:
    """The figures and tables alone."""
    written: list[Path] = []
    folder.mkdir(parents=True, exist_ok=True)
    for figure in figures_of(results):
        image, data = folder / f"{figure.key}.png", folder / f"{figure.key}.csv"
        image.write_bytes(figure_png(figure.spec, figure.title))
        write_whole(data, figure_csv(figure.spec))
        written += [image, data]
    found = [cell for cell in cells(results) if not cell.is_twin]
    tables = tables_of(found)
    if tables:
        text = folder / "tables.md"
        write_whole(text, "\n".join(table.markdown() for table in tables))
        written.append(text)
    for number, table in enumerate(tables, 1):
        path = folder / f"table-{number}-{table.metric}.csv"
        headings, *rows = table.csv_rows()
        write_whole(path, as_csv(headings, rows))
        written.append(path)
    return written
