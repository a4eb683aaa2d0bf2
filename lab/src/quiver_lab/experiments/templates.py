"""Writes experiment files: from a few words to a file that is right and says what else it could hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from quiver_lab.experiments.experiment import FORWARDERS

SEARCHES = {
    "mrr": "  mrr: {trials: 10, duration_s: 1}",
    "ndrpdr": "  ndrpdr: {}  # MLRsearch with CSIT's goals: trials of 1 s, 21 s at each bound",
    "pdr_finder": "  pdr_finder: {}  # algorithm 1 of the SRPerf paper: trials of 10 s",
    "latency": "  latency: {percents_of_pdr: [10, 50, 90]}",
    "telemetry": "  telemetry: {duration_s: 1}",
}
QUICK = {
    "mrr": "  mrr: {trials: 3, duration_s: 0.5}",
    "ndrpdr": "  ndrpdr: {initial_trial_duration_s: 0.2, trial_duration_s: 0.5, duration_sum_s: 1.5, "
    "relative_width: 0.01, warmup_s: 0.2, search_duration_max_s: 15}",
    "pdr_finder": "  pdr_finder: {trial_duration_s: 0.5}",
    "latency": "  latency: {duration_s: 0.5}",
    "telemetry": "  telemetry: {duration_s: 0.5}",
}
SWITCHED_OFF = ("ndrpdr", "latency", "telemetry")
"""Searches that run unless a file says null."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a new file asks."""

    question: str
    title: str
    forwarders: Sequence[str] = ("quiver",)
    scenarios: Sequence[str] = ("ip4base",)
    frames: Sequence[str] = ("min",)
    workers: Sequence[int] = (1,)
    searches: Sequence[str] = ("mrr", "ndrpdr", "latency", "telemetry")
    repetitions: int = 1
    quick: bool = False


def experiment_text(wanted: Wanted) -> str:
    """A file's text. Whoever calls this validates it: a word may be wrong."""
    lines = [f"question: {_quoted(wanted.question)}", f"title: {_quoted(wanted.title)}"]
    if wanted.repetitions > 1:
        lines.append(f"repetitions: {wanted.repetitions}  # in rounds: A B, B A, …")
    axes = {
        "forwarder": [_forwarder(name) for name in wanted.forwarders],
        "scenario": list(wanted.scenarios),
        "frame": list(wanted.frames),
        "workers": [str(number) for number in wanted.workers],
    }
    single = {key: values[0] for key, values in axes.items() if len(values) == 1}
    if single.get("workers") not in (None, "1"):
        single["forwarder"] = f"{{kind: {single['forwarder']}, workers: {single['workers']}}}"
    single.pop("workers", None)
    lines += [f"{key}: {value}" for key, value in single.items()]
    several = {key: values for key, values in axes.items() if len(values) > 1}
    if several:
        lines.append("matrix:  # every combination is a cell")
        lines += [f"  {key}: [{', '.join(values)}]" for key, values in several.items()]
    lines.append("search:  # what is left out has CSIT's values; null switches a search off")
    words = QUICK if wanted.quick else SEARCHES
    lines += [words[name] for name in words if name in wanted.searches]
    lines += [f"  {name}: null" for name in SWITCHED_OFF if name not in wanted.searches]
    return "\n".join(lines) + "\n"


def _forwarder(name: str) -> str:
    return "{kind: simulated, capacity_pps: 9.0e+6}" if name == "simulated" else name


def _quoted(text: str) -> str:
    """A YAML scalar that is certainly text."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ") + '"'


def known_forwarders() -> str:
    """For messages and help."""
    return ", ".join(sorted(FORWARDERS))
