"""The command `compare`: the ready comparisons, two results, or two sides of an experiment in turns."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from quiver_lab.commands.application import INTERRUPTED, console, fail, say, terminated
from quiver_lab.commands.stored import StoreOption, print_comparisons, report_and_keep, results_at
from quiver_lab.compare.running import COMPARISONS, Options, compare_all
from quiver_lab.experiments.experiment import TWIN, Experiment, in_rounds, of_builds, parse_experiment
from quiver_lab.experiments.yaml_reading import YamlError, read_text
from quiver_lab.generators.quiver_tg import GeneratorError
from quiver_lab.history.baseline import compare_results, different_hosts, interleaved, noise_table, unmatched
from quiver_lab.host.json_rpc import RpcError
from quiver_lab.host.processes import ProcessError
from quiver_lab.results.model import Results, ResultsError
from quiver_lab.runs.campaign import NotKeptError, run_experiment
from quiver_lab.statistics.comparison import ROUNDS_MIN
from quiver_lab.store.folder import Store

ROUNDS_READY = 7
"""Of the ready comparisons, when nothing is said: enough for a noise floor, and odd, for a median."""
EXPERIMENT_SUFFIXES = (".yaml", ".yml")


def compare(
    *,
    what: Annotated[
        list[str] | None,
        typer.Argument(
            help="peers, scale, latency, workers, tcp, generators, filters (all if left out); or two "
            "results; or one experiment of two cells, which take turns (A B B A)."
        ),
    ] = None,
    builds: Annotated[
        list[Path] | None,
        typer.Option("--build", help="A folder with a quiverd; twice: two builds run the experiment."),
    ] = None,
    rounds: Annotated[
        int | None, typer.Option(min=1, max=101, help="Turns of each side; of an experiment, A B B A.")
    ] = None,
    seconds: Annotated[
        float | None, typer.Option(min=0.01, max=60, help="How long a turn is; 0.3 unless told, for tcp 3.")
    ] = None,
    ring_size: Annotated[
        int | None, typer.Option(help="Frames a memif ring holds; 1024 unless told, for latency 8192.")
    ] = None,
    prefixes: Annotated[
        Path | None, typer.Option(help="A file of real prefixes for `scale`, one a line.")
    ] = None,
    noise: Annotated[
        bool,
        typer.Option(
            "--noise-floor/--no-noise-floor",
            help="Of an experiment: measure A against A too, and call no smaller difference a finding.",
        ),
    ] = True,
    out: Annotated[Path, typer.Option(help="Folder for what is written.")] = Path("out/compare"),
    resume: Annotated[bool, typer.Option("--resume", help="Go on after an interrupt.")] = False,
    store: StoreOption = None,
) -> None:
    """Say which is faster: Quiver and its peers, two results, or two builds or forwarders in turns."""
    signal.signal(signal.SIGTERM, terminated)
    named = what or list(COMPARISONS)
    try:
        if len(named) == 1 and Path(named[0]).suffix in EXPERIMENT_SUFFIXES:
            place = Store.here(store)
            _in_turns(Path(named[0]), builds or [], rounds, out, noise=noise, resume=resume, store=place)
        elif builds:
            fail("--build needs an experiment (a YAML file) to run", 2)
        elif all(name in COMPARISONS for name in named):
            _ready(named, Options(rounds or ROUNDS_READY, seconds, ring_size, prefixes, out))
        elif len(named) == 2:
            _results(named[0], named[1], Store.here(store))
        else:
            fail(
                f"{' '.join(named)}: give two results, one experiment, or some of {', '.join(COMPARISONS)}", 2
            )
    except KeyboardInterrupt:
        fail(f"interrupted; what was finished is in {out}", INTERRUPTED)


def _ready(names: list[str], options: Options) -> None:
    try:
        written = compare_all(names, options, console)
    except (ProcessError, RpcError, GeneratorError, OSError, ValueError) as error:
        fail(str(error) or repr(error))
    for path in written:
        say(f"results {path}")


def _results(first: str, second: str, store: Store) -> None:
    one, other = results_at(first, store), results_at(second, store)
    names = ("A", "B")
    comparisons = compare_results(one, other, names)
    if not comparisons:
        fail("the two results have no cell and figure in common", 2)
    for name, told in zip(names, (one, other), strict=True):
        at = f", commit {told.commit.short}" if told.commit else ""
        say(f"{name}  {told.identity}  {told.title}{at}")
    print_comparisons(comparisons, names)
    if (one.noise or other.noise) and not different_hosts(one, other):
        say("differences were held against the larger of the noise floors that the two results have")
    else:
        say("no noise floor is known: `quiver-lab compare EXPERIMENT.yaml` measures A against A")
    for sentence in (different_hosts(one, other), *unmatched(one, other, names)):
        if sentence:
            say(sentence)
    say("measured in two runs: whatever changed between them is in the effect; `--build` takes turns")


def _say_noise(results: Results) -> None:
    if results.noise:
        console.print(noise_table(results.noise))
    elif any(run.cell.endswith(TWIN) for run in results.scenarios):
        say(
            f"no noise floor: fewer than {ROUNDS_MIN} rounds of A against A count; an effect that is smaller "
            "than this host's noise may be taken for a finding"
        )


def _turns(text: str, name: str, builds: Sequence[Path], rounds: int | None, *, noise: bool) -> Experiment:
    """An experiment of two cells, or of one that meets itself, in rounds."""
    if builds:
        if len(builds) != 2:
            fail(f"two builds are compared, and {len(builds)} were given: --build OLD --build NEW", 2)
        labels = [folder.name for folder in builds]
        if labels[0] == labels[1]:
            labels = [str(folder) for folder in builds]
        rounds = rounds or ROUNDS_MIN
        text = of_builds(text, name, dict(zip(labels, builds, strict=True)), None)
    written = parse_experiment(text, name)
    count = sum(not cell.key.endswith(TWIN) for cell in written.cells)
    if count > 2:
        fail(
            f"{name}: an A/B comparison has two cells, and this experiment has {count}: a matrix with one "
            "key of two values makes two, and --build OLD --build NEW does too; one cell alone is measured "
            "against itself",
            2,
        )
    return parse_experiment(in_rounds(text, name, rounds, noise_floor=noise or count == 1), name)


def _in_turns(
    path: Path,
    builds: list[Path],
    rounds: int | None,
    out: Path,
    *,
    noise: bool,
    resume: bool,
    store: Store,
) -> None:
    """An experiment of two cells: every round of theirs is A B B A."""
    try:
        experiment = _turns(read_text(path), str(path), builds, rounds, noise=noise)
        results = run_experiment(experiment, out, console, resume=resume)
        comparisons = interleaved(results)
    except (YamlError, ResultsError) as error:
        fail(str(error), 2)
    except (NotKeptError, ValueError) as error:
        fail(str(error))
    if comparisons:
        print_comparisons(comparisons, (experiment.cells[0].title, experiment.cells[1].title))
    _say_noise(results)
    if results.repetitions < 2 * ROUNDS_MIN:
        say(f"{2 * ROUNDS_MIN} repetitions are {ROUNDS_MIN} rounds, the fewest that can be sure: --rounds")
    report_and_keep(results, out, store)
    if not results.complete:
        raise typer.Exit(1)
