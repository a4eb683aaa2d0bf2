"""Trials that the host disturbed: measured again by evidence that knows nothing of loss, bounded, told."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from conftest import SHORT_SEARCH, scenario
from quiver_lab.forwarders import cpu_map
from quiver_lab.forwarders.quiver import Quiver, QuiverConfig
from quiver_lab.generators.answers import Result
from quiver_lab.host.facts import host_facts
from quiver_lab.machines.here import LocalMachine
from quiver_lab.report.page import disturbed_rows, render
from quiver_lab.results.aggregate import annotation_kinds_about
from quiver_lab.results.annotations import marks
from quiver_lab.results.model import Results, ScenarioResult
from quiver_lab.runs.journal import Journal, unfinished_trials
from quiver_lab.runs.recording import Recorder, SilentObserver
from quiver_lab.runs.running import run_scenario
from quiver_lab.search.mrr import maximum_receive_rate
from quiver_lab.search.ndrpdr import NdrPdrSettings, ndr_pdr
from quiver_lab.search.pdr_finder import PdrFinderSettings, find_pdr
from quiver_lab.store.rows import rows
from quiver_lab.testbed.benches import make_bench
from quiver_lab.testbed.cores import Cores
from quiver_lab.trials.disturbance import Bridge, Harm, HostWatch, Repeats
from quiver_lab.trials.measurement import ChangeRequest, Load, Stalls, Trial, TrialRequest, drive, replay
from quiver_lab.trials.simulated import LossCurve, SimulatedForwarder

CAPACITY = 8e6
NDR_PDR = ("ndr", "pdr")
STALLS = {"host_stalls_per_s": 1.0, "host_stall_s": 0.005}


def trial(load: Load = 8e6, stalls: Stalls | None = None, lost: int = 0) -> Trial:
    return Trial(load, 1.0, 8_000_000, 8_000_000, 8_000_000 - lost, lost, stalls=stalls)


def watch(forwarder: object | None = None) -> HostWatch:
    """It looks at no steal time: that of a busy machine would disturb these tests."""
    return HostWatch(Bridge(16_384), forwarder, simulated=True)


class Stalling:
    """A forwarder that says how its workers stood still."""

    def __init__(self, stalls: Stalls) -> None:
        self.said = stalls

    def forget_stalls(self) -> None:
        """Nothing to forget."""

    def stalls(self) -> Stalls:
        return self.said


def simulated(search: dict[str, object] | None = None, **forwarder: object) -> ScenarioResult:
    settings = {"kind": "simulated", "capacity_pps": CAPACITY, "generator_max_pps": 2e7, **forwarder}
    return run_scenario(scenario(forwarder=settings, search=SHORT_SEARCH | (search or {})), SilentObserver())


def test_frames_are_lost_to_a_stall_of_the_forwarder_when_the_rings_are_full() -> None:
    bridge = Bridge(16_384)
    assert bridge.covers_s(8e6) == pytest.approx(2 * 8_192 / 8e6)
    short, long = Stalls(3, 0.006, 0.002), Stalls(1, 0.003, 0.003)
    assert bridge.harm(trial(8e6), None, short) == Harm(0.0, 0.006)
    assert bridge.harm(trial(8e6), None, long).lost_share == pytest.approx((0.003 - 2_048e-6) * 8e6 / 8e6)
    # Flat out there is nothing to bridge: what is missing is time.
    assert bridge.harm(trial("max"), None, long) == Harm(0.0, 0.003)
    # Lengths that are known say more than a sum and the longest.
    told = Stalls(3, 0.006, 0.003, ((1, 0.003), (2, 0.0015)))
    assert told.beyond_s(0.002) == pytest.approx(0.001)
    assert replace(told, lengths=()).beyond_s(0.002) == pytest.approx(0.002)
    assert Stalls(2, 0.004, 0.003).beyond_s(0.0005) == pytest.approx(0.003)


def test_the_generator_makes_up_for_its_own_stalls_within_what_the_forwarder_has_shown_to_pass() -> None:
    bridge, stalls = Bridge(2_048), Stalls(2, 0.02, 0.01)
    assert bridge.harm(trial(8e6), stalls, None, proven_pps=9e6).lost_share == 0.0
    assert bridge.harm(trial(8e6), stalls, None, proven_pps=8.5e6).lost_share > 0.0
    at_once = Bridge(2_048, make_up=None)
    assert at_once.harm(trial(8e6), stalls, None, 9e6) == bridge.harm(trial(8e6), None, stalls)


def test_a_generator_that_stood_still_for_too_long_to_make_up_for_it_did_not_send_all() -> None:
    bridge = Bridge(16_384)
    often = Stalls(200, 0.4, 0.002)
    # It has 0.6 s left, and an eighth of that is all that it can send more.
    assert bridge.harm(trial(1e6), often, None, proven_pps=2e6).lost_share == pytest.approx(
        0.325 * 1e6 / 8_000_000
    )
    bearable = Stalls(50, 0.1, 0.002)
    assert bridge.harm(trial(1e6), bearable, None, proven_pps=2e6).lost_share == 0.0
    assert bridge.harm(trial("max"), often, None) == Harm(0.0, 0.4)
    seen = watch(Stalling(Stalls()))
    assert seen.end(trial(1e6, stalls=often), TrialRequest(1.0, 1e6), NDR_PDR).disturbs == NDR_PDR


@pytest.mark.parametrize(
    ("harm", "load", "changed"),
    [
        (0.0, 8e6, ()),
        (0.0010, 8e6, ("ndr",)),
        (0.0035, 8e6, ("ndr", "pdr")),
        (0.0150, "max", ()),
        (0.0250, "max", ("mrr",)),
    ],
)
def test_each_figure_bears_so_much(harm: float, load: Load, changed: tuple[str, ...]) -> None:
    away = Stalls(1, harm, harm) if load == "max" else Stalls(1, harm + 2_048e-6, harm + 2_048e-6)
    seen = watch(Stalling(away))
    metrics = ("mrr",) if load == "max" else ("ndr", "pdr")
    evidence = seen.end(trial(load), TrialRequest(1.0, load), metrics)
    assert evidence.disturbs == changed
    assert bool(evidence.why) == bool(changed)


def test_what_a_trial_lost_is_no_evidence() -> None:
    asked = TrialRequest(1.0, 8e6)
    for lost in (0, 1, 4_000_000):
        assert watch().end(trial(lost=lost), asked, NDR_PDR).disturbs == ()
        stood = watch(Stalling(Stalls(1, 0.01, 0.01)))
        assert stood.end(trial(lost=lost), asked, NDR_PDR).disturbs == NDR_PDR


def test_the_forwarders_own_stalls_count_but_not_while_its_configuration_changes() -> None:
    seen = watch(Stalling(Stalls(1, 0.004, 0.004)))
    seen.begin()
    (why,) = seen.end(trial(), TrialRequest(1.0, 8e6), NDR_PDR).why
    assert why.startswith("the forwarder's core stood still for 4.0 ms")
    evidence = seen.end(trial(), ChangeRequest(1.0, 8e6, "routes", 0.5), ("blocked",))
    assert evidence.disturbs == ()
    assert evidence.forwarder == Stalls(1, 0.004, 0.004)


def test_a_forwarder_that_tells_no_stalls_has_those_of_the_generator() -> None:
    long = Stalls(1, 0.01, 0.01)
    quiet = HostWatch(Bridge(16_384), None)
    assert quiet.end(trial(stalls=long), TrialRequest(1.0, 8e6), NDR_PDR).harm.lost_share > 0.0
    # One that tells is believed: at this load it passes what a stall of the generator delayed.
    telling = watch(Stalling(Stalls()))
    telling.end(trial(1.2e7), TrialRequest(1.0, 1.2e7), NDR_PDR)
    assert telling.end(trial(7e6, stalls=long), TrialRequest(1.0, 7e6), NDR_PDR).disturbs == ()


def test_a_trial_is_repeated_where_another_has_a_chance_to_be_left_alone() -> None:
    repeats = Repeats(each=2, extra_share=0.5)
    for _ in range(4):
        repeats.note(("ndr", "pdr"), ("ndr",))
    assert not repeats.is_worth_it(("ndr",))
    assert repeats.is_worth_it(("ndr", "pdr"))
    assert not repeats.is_worth_it(())
    repeats.note(("ndr", "pdr"), ())
    assert not repeats.is_worth_it(("ndr",))
    repeats.note(("ndr", "pdr"), ())
    assert repeats.is_worth_it(("ndr",))


def counted(lost: int, harm: float, phase: str = "NDR, PDR") -> ScenarioResult:
    """A run of one disturbed trial that counts."""
    result = simulated()
    record = next(one for one in result.trials if one.phase == phase)
    result.trials = [
        record.model_copy(
            update={
                "trial": trial(lost=lost),
                "disturbed": True,
                "disturbs": ["ndr", "pdr"],
                "harm": Harm(harm, harm),
            }
        )
    ]
    return result


@pytest.mark.parametrize(
    ("lost", "harm", "marked"),
    [
        (0, 0.01, set()),  # it passed in spite of the stalls
        (8_000, 0.01, {"ndr"}),  # 0.1 %: no verdict on PDR
        (8_000, 0.0005, set()),  # more than they explain
        (48_000, 0.01, {"ndr", "pdr"}),
        (80_000, 0.001, set()),
    ],
)
def test_a_trial_that_counts_marks_the_figures_whose_verdict_may_be_the_hosts(
    lost: int, harm: float, marked: set[str]
) -> None:
    found = [mark for mark in marks(counted(lost, harm)) if mark.kind == "host-disturbed"]
    assert {metric for mark in found for metric in mark.metrics} == marked


def test_a_router_tells_its_long_passes(fakes: Path, tmp_path: Path) -> None:
    router = Quiver(QuiverConfig(None, (1,), 1_024, ()), LocalMachine(tmp_path))
    router.start()
    try:
        router.forget_stalls()
        # Two passes from 1,048.576 us, one from 65.536 us: the short one explains itself.
        length = pytest.approx(1.572864e-3)
        assert router.stalls() == Stalls(2, pytest.approx(2 * 1.572864e-3), length, ((2, length),))
    finally:
        router.stop()


def test_a_generator_of_an_older_build_tells_how_long_it_was_held_up() -> None:
    told = {"intended": 10, "offered": 10, "received": 10, "lost": 0, "duration_s": 1.0}
    assert Result.model_validate(told).stalls() == Stalls()
    assert Result.model_validate(told | {"held_up_s": 0.01}).stalls() == Stalls(1, 0.01, 0.01)
    newer = {"count": 2, "total_s": 0.003, "longest_s": 0.002, "rings_filled": 1}
    assert Result.model_validate(told | {"held_up_s": 0.01, "host_stalls": newer}).trial(
        1e6
    ).stalls == Stalls(2, 0.003, 0.002)


def test_repetitions_are_bounded_for_each_trial_and_for_all_together() -> None:
    repeats = Repeats(each=2, extra_share=0.5)
    assert repeats.may_repeat(1, 1.0)
    assert repeats.may_repeat(2, 1.0)
    assert not repeats.may_repeat(3, 1.0)
    repeats.extra_s = 4.0
    assert not repeats.may_repeat(1, 1.0)
    repeats.counted_s = 2.0
    assert repeats.may_repeat(1, 1.0)


def test_a_search_never_sees_a_disturbed_trial_that_could_be_repeated() -> None:
    result = simulated({"disturbed": {"repeats": 5, "extra_share": 3}}, **STALLS)
    told = result.disturbed_trials
    assert told is not None
    assert told.repeated > 0
    assert told.disturbed == told.repeated + told.counted
    assert told.trials == len(result.trials)
    for before, after in zip(result.trials, result.trials[1:], strict=False):
        if before.set_apart:
            assert before.disturbed
            assert (after.phase, after.asked_s, after.trial.load) == (
                before.phase,
                before.asked_s,
                before.trial.load,
            )
    assert result.ndr_pps == pytest.approx(CAPACITY, rel=0.02)


def test_without_repetitions_the_run_is_marked_and_its_figures_set_apart() -> None:
    result = simulated({"disturbed": {"repeats": 0}}, host_stalls_per_s=20.0, host_stall_s=0.005)
    assert result.disturbed_trials is not None
    assert result.disturbed_trials.repeated == 0
    for metric in ("mrr", "ndr", "pdr_finder"):
        assert "host-disturbed" in annotation_kinds_about(result, metric)
    clean = simulated()
    assert clean.disturbed_trials is None
    assert not any(mark.kind == "host-disturbed" for mark in clean.marks)


def test_a_disturbed_trial_that_lost_nothing_harms_no_search_where_loss_decides() -> None:
    deep = {"host_stalls_per_s": 5.0, "host_stall_s": 0.004, "buffer_frames": 1_000_000}
    result = simulated({"disturbed": {"repeats": 0}}, **deep)
    # The rings bridge all of it: not one trial is disturbed.
    assert result.disturbed_trials is None or "host-disturbed" not in annotation_kinds_about(result, "ndr")


def test_the_result_says_what_it_would_have_been_without_repeating() -> None:
    result = simulated({"disturbed": {"repeats": 5, "extra_share": 3}}, **STALLS)
    assert result.disturbed_trials is not None
    without = {one.metric: one for one in result.disturbed_trials.without_repeating}
    assert "ndr" in without
    first = without["ndr"].upper_pps or without["ndr"].lower_pps or 0.0
    assert first <= CAPACITY * 1.02
    page = render(Results(title="t", host=host_facts(), scenarios=[result], planned=[], complete=True))
    assert "Trials that the host disturbed" in page
    (row,) = disturbed_rows([result])
    assert any(line.startswith("NDR") for line in row.without)
    stored = rows(Results(title="t", host=host_facts(), scenarios=[result]))
    assert stored["runs"][0]["trials_repeated"] == result.disturbed_trials.repeated
    assert any(line["set_apart"] and "stood still" in line["why"] for line in stored["trials"])


def test_a_plan_that_gets_no_more_trials_ends_with_what_it_knows() -> None:
    forwarder = SimulatedForwarder(LossCurve(CAPACITY))
    told: list[tuple[float, Trial]] = []

    class Keeping:
        def measure(self, duration_s: float, load: Load) -> Trial:
            told.append((duration_s, forwarder.measure(duration_s, load)))
            return told[-1][1]

    settings = NdrPdrSettings(duration_sum_s=3.0)
    whole = drive(ndr_pdr(settings, 1e5, 1.2e7), Keeping())
    assert replay(ndr_pdr(settings, 1e5, 1.2e7), told) == (whole, True)
    cut, complete = replay(ndr_pdr(settings, 1e5, 1.2e7), told[:-3])
    assert not complete
    assert not cut.ndr.finished
    assert (cut.pdr.lower_pps or 0.0) <= CAPACITY * 1.01
    told.clear()
    finder = drive(find_pdr(1.2e7, PdrFinderSettings()), Keeping())
    half, complete = replay(find_pdr(1.2e7, PdrFinderSettings()), told[:2])
    assert not complete
    assert half.upper_pps - half.lower_pps > finder.upper_pps - finder.lower_pps
    told.clear()
    drive(maximum_receive_rate(3, 0.1), Keeping())
    assert replay(maximum_receive_rate(3, 0.1), told)[1]


def test_a_run_that_goes_on_knows_which_trials_were_set_apart(tmp_path: Path) -> None:
    """The journal of a cut-off run gives each search the attempts that it saw, and none that it did not."""
    wanted = scenario(
        forwarder={"kind": "simulated", "capacity_pps": CAPACITY, "generator_max_pps": 2e7, **STALLS},
        search=SHORT_SEARCH | {"disturbed": {"repeats": 5, "extra_share": 3}},
    )
    whole = run_scenario(wanted, SilentObserver())
    again = Recorder(
        SimulatedForwarder(LossCurve(1.0)), SilentObserver(), phase="MRR", earlier=list(whole.trials)
    )
    found = drive(maximum_receive_rate(2, 0.1), again)
    assert found == whole.mrr
    assert again.resumed == sum(record.phase == "MRR" for record in whole.trials)
    journal = Journal(tmp_path / "journal.jsonl")
    journal.begin("t", 1)
    for record in whole.trials:
        journal.trial(record)
    (kept,) = unfinished_trials(tmp_path / "journal.jsonl").values()
    assert [record.set_apart for record in kept] == [record.set_apart for record in whole.trials]


def answer(seed: int, repeats: int) -> bool:
    """Whether the true NDR is in the interval that a stalling host's run gives."""
    choice = random.Random(seed)
    capacity = 10 ** choice.uniform(6.3, 7.3)
    forwarder = SimulatedForwarder(
        LossCurve(capacity), noise=0.0002, host_stalls_per_s=1.0, host_stall_s=0.008, seed=seed
    )
    seen = HostWatch(Bridge(forwarder.buffer_frames, make_up=None), simulated=True)
    recorder = Recorder(forwarder, SilentObserver(), seen, Repeats(repeats, 4.0), phase="NDR, PDR")
    found = drive(ndr_pdr(NdrPdrSettings(), 0.01 * capacity, 1.25 * capacity), recorder)
    return (found.ndr.lower_pps or 0.0) <= capacity * 1.0005 and (found.ndr.upper_pps or 0.0) >= capacity


def test_on_a_host_that_stalls_every_second_the_true_ndr_is_found_by_repeating() -> None:
    seeds = range(20)
    assert sum(answer(seed, repeats=6) for seed in seeds) >= 19
    assert sum(answer(seed, repeats=0) for seed in seeds) <= 10


@pytest.mark.parametrize(("forwarder", "frames"), [("quiver", 2 * 8_192), ("linux", cpu_map.QUEUE_FRAMES)])
def test_a_stall_is_bridged_by_the_rings_that_the_forwarder_has(
    forwarder: str, frames: int, tmp_path: Path
) -> None:
    described = scenario(forwarder={"kind": forwarder})
    bench = make_bench(described, LocalMachine(tmp_path), tmp_path, Cores(0, (0,), 1))
    assert bench.buffering.of(2) == frames
