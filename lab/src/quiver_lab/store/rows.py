"""A results file as rows of tables: what each column means is said here once, in SQL's types."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from quiver_lab.results.aggregate import METRICS, annotation_kinds_about
from quiver_lab.results.model import Results, ScenarioResult
from quiver_lab.trials.measurement import Latency

Row = dict[str, Any]

RUN_KEY = {"result": "VARCHAR", "cell": "VARCHAR", "repetition": "INTEGER"}
LATENCY = {
    "count": "BIGINT", "min_ns": "DOUBLE", "p50_ns": "DOUBLE", "p90_ns": "DOUBLE", "p99_ns": "DOUBLE",
    "p99_9_ns": "DOUBLE", "max_ns": "DOUBLE", "mean_ns": "DOUBLE", "hdr": "VARCHAR",
}  # fmt: skip
APART = "_apart"
"""Behind a figure's name: the column of those that a mark sets apart."""
TABLES: dict[str, dict[str, str]] = {
    "runs": {
        **RUN_KEY,
        "title": "VARCHAR", "name": "VARCHAR", "question": "VARCHAR", "created": "TIMESTAMP",
        "forwarder": "VARCHAR", "forwarder_version": "VARCHAR", "generator_version": "VARCHAR",
        "revision": "VARCHAR", "committed": "TIMESTAMP", "lab_version": "VARCHAR", "cpu": "VARCHAR",
        "kernel": "VARCHAR", "path": "VARCHAR", "frame": "VARCHAR", "workers": "INTEGER", "routes": "BIGINT",
        "factors": "VARCHAR", "status": "VARCHAR", "error": "VARCHAR", "took_s": "DOUBLE",
        "busy_before": "DOUBLE", "ndr_upper_pps": "DOUBLE", "pdr_upper_pps": "DOUBLE",
        "mrr_stdev_pps": "DOUBLE", "trials_disturbed": "INTEGER", "trials_repeated": "INTEGER",
        "marks": "VARCHAR", **dict.fromkeys(METRICS, "DOUBLE"),
        **dict.fromkeys((key + APART for key in METRICS), "DOUBLE"),
    },
    "trials": {
        **RUN_KEY,
        "number": "INTEGER", "phase": "VARCHAR", "at_s": "DOUBLE", "load_pps": "DOUBLE",
        "duration_s": "DOUBLE", "intended": "BIGINT", "offered": "BIGINT", "received": "BIGINT",
        "lost": "BIGINT", "loss_ratio": "DOUBLE", "received_pps": "DOUBLE", "reordered": "BIGINT",
        "duplicated": "BIGINT", "refused": "BIGINT", "limited_by_generator": "BOOLEAN",
        "steal_share": "DOUBLE", "disturbed": "BOOLEAN", "set_apart": "BOOLEAN", "why": "VARCHAR",
        "generator_stall_s": "DOUBLE", "forwarder_stall_s": "DOUBLE", **LATENCY,
    },
    "latency": {
        **RUN_KEY,
        "name": "VARCHAR", "percent_of_pdr": "DOUBLE", "load_pps": "DOUBLE", "loss_ratio": "DOUBLE",
        **LATENCY,
    },
    "nodes": {
        **RUN_KEY,
        "node": "VARCHAR", "calls": "BIGINT", "vectors": "BIGINT", "clocks_per_packet": "DOUBLE",
        "vectors_per_call": "DOUBLE",
    },
    "drops": {**RUN_KEY, "node": "VARCHAR", "reason": "VARCHAR", "count": "BIGINT"},
    "counters": {**RUN_KEY, "asked": "VARCHAR", "told": "VARCHAR"},
    "cpus": {
        **RUN_KEY,
        "cpu": "INTEGER", "user": "DOUBLE", "system": "DOUBLE", "softirq": "DOUBLE", "steal": "DOUBLE",
        "idle": "DOUBLE",
    },
    "marks": {**RUN_KEY, "kind": "VARCHAR", "about": "VARCHAR", "metrics": "VARCHAR"},
}  # fmt: skip
"""Tables and their columns. A load of null is the generator's maximum. Rates are frames a second, both
directions together."""


def rows(results: Results) -> dict[str, list[Row]]:
    """Every table's rows."""
    found: dict[str, list[Row]] = {name: [] for name in TABLES}
    for run in results.scenarios:
        key = {"result": results.identity, "cell": run.cell or run.name, "repetition": run.repetition}
        found["runs"].append(key | _run(results, run))
        found["trials"] += [key | row for row in _trials(run)]
        for at in run.latency:
            told = {"name": at.name, "percent_of_pdr": at.percent_of_pdr, "load_pps": at.load_pps}
            found["latency"].append({**key, **told, "loss_ratio": at.loss_ratio, **_latency(at.latency)})
        if run.telemetry:
            found["nodes"] += [key | _fields(node, TABLES["nodes"]) for node in run.telemetry.nodes]
            found["drops"] += [key | _fields(drop, TABLES["drops"]) for drop in run.telemetry.drops]
            told_counters = run.telemetry.counters.items()
            found["counters"] += [{**key, "asked": asked, "told": told} for asked, told in told_counters]
            found["cpus"] += [key | _fields(cpu, TABLES["cpus"]) for cpu in run.telemetry.cpus]
        for mark in run.marks:
            told_mark = {"kind": mark.kind, "about": mark.about, "metrics": ",".join(mark.metrics)}
            found["marks"].append(key | told_mark)
    return found


def _fields(part: object, columns: dict[str, str]) -> Row:
    return {name: getattr(part, name) for name in columns if name not in RUN_KEY}


def _latency(latency: Latency | None) -> Row:
    return {name: getattr(latency, name) for name in LATENCY} if latency else dict.fromkeys(LATENCY)


def _run(results: Results, run: ScenarioResult) -> Row:
    commit = results.commit
    interval = run.ndrpdr
    return {
        "title": run.title,
        "name": run.name,
        "question": run.question,
        "created": results.created.replace(tzinfo=None).isoformat(),
        "forwarder": run.forwarder,
        "forwarder_version": run.forwarder_version,
        "generator_version": run.generator_version,
        "revision": commit.revision if commit else None,
        "committed": commit.at.isoformat(sep=" ")[:19] if commit else None,
        "lab_version": results.lab_version,
        "cpu": results.host.cpu,
        "kernel": results.host.kernel,
        "path": run.scenario.get("path"),
        "frame": str(run.scenario.get("frame")),
        "workers": run.scenario.get("forwarder", {}).get("workers"),
        "routes": run.routes,
        "factors": json.dumps(run.factors),
        "status": run.status,
        "error": run.error,
        "took_s": run.took_s,
        "busy_before": run.busy_before,
        "ndr_upper_pps": interval.ndr.upper_pps if interval else None,
        "pdr_upper_pps": interval.pdr.upper_pps if interval else None,
        "mrr_stdev_pps": run.mrr.stdev_pps if run.mrr else None,
        "trials_disturbed": run.disturbed_trials.disturbed if run.disturbed_trials else 0,
        "trials_repeated": run.disturbed_trials.repeated if run.disturbed_trials else 0,
        **_figures(run),
        "marks": ",".join(dict.fromkeys(mark.kind for mark in run.marks)),
    }


def _figures(run: ScenarioResult) -> Row:
    """Each figure in one of two columns: an average over the first never has one that is marked in it."""
    found: Row = {}
    for key, metric in METRICS.items():
        is_apart = bool(annotation_kinds_about(run, key))
        found[key + APART if is_apart else key] = metric.get(run)
        found[key if is_apart else key + APART] = None
    return found


def _trials(run: ScenarioResult) -> Iterator[Row]:
    for number, record in enumerate(run.trials):
        trial = record.trial
        yield {
            "number": number,
            "phase": record.phase,
            "at_s": record.at_s,
            "load_pps": None if isinstance(trial.load, str) else trial.load,
            "duration_s": trial.duration_s,
            "intended": trial.intended,
            "offered": trial.offered,
            "received": trial.received,
            "lost": trial.lost,
            "loss_ratio": trial.loss_ratio,
            "received_pps": trial.received_pps,
            "reordered": trial.reordered,
            "duplicated": trial.duplicated,
            "refused": trial.refused,
            "limited_by_generator": trial.limited_by_generator,
            "steal_share": record.steal_share,
            "disturbed": record.disturbed,
            "set_apart": record.set_apart,
            "why": "; ".join(record.why),
            "generator_stall_s": trial.stalls.total_s if trial.stalls else None,
            "forwarder_stall_s": record.forwarder_stalls.total_s if record.forwarder_stalls else None,
            **_latency(trial.latency),
        }
