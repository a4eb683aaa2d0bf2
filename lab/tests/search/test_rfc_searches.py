"""RFC 2544 throughput and frame loss rate, and RFC 9004 back-to-back frames, on simulated forwarders."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quiver_lab.search.back_to_back import BackToBackSettings, back_to_back, buffer_times_s
from quiver_lab.search.loss_curve import frame_loss_rate
from quiver_lab.search.throughput import ThroughputSettings, rfc2544_throughput
from quiver_lab.trials.measurement import Trial, UnsupportedRequestError, drive
from quiver_lab.trials.simulated import LossCurve, SimulatedForwarder


@given(capacity=st.floats(1.1e5, 9.9e6), resolution=st.sampled_from([0.01, 0.001, 0.0001]))
@settings(max_examples=60)
def test_rfc_2544_throughput_brackets_the_capacity_as_narrowly_as_asked(
    capacity: float, resolution: float
) -> None:
    goals = ThroughputSettings(trial_duration_s=60.0, resolution=resolution)
    found = drive(rfc2544_throughput(1e5, 1e7, goals), SimulatedForwarder(LossCurve(capacity)))
    assert found.throughput_pps is not None
    assert found.upper_pps is not None
    assert found.throughput_pps - 0.1 <= capacity <= found.upper_pps + 0.1
    assert found.upper_pps - found.throughput_pps <= 1e7 * resolution
    assert found.steps[-1].lower_pps == found.throughput_pps
    assert found.trial_time_s == pytest.approx(60.0 * found.trials)


def test_rfc_2544_throughput_at_either_end_of_the_rates_says_so() -> None:
    goals = ThroughputSettings(trial_duration_s=1.0)
    above = drive(rfc2544_throughput(1e5, 1e7, goals), SimulatedForwarder(LossCurve(2e7)))
    assert (above.throughput_pps, above.upper_pps, above.trials) == (1e7, None, 1)
    below = drive(rfc2544_throughput(1e5, 1e7, goals), SimulatedForwarder(LossCurve(5e4)))
    assert (below.throughput_pps, below.upper_pps) == (None, 1e5)


def test_full_buffers_after_overload_fool_one_trial_but_not_loss_verification() -> None:
    def find(verifications: int) -> float:
        forwarder = SimulatedForwarder(LossCurve(7e6), hysteresis_frames=1000)
        goals = ThroughputSettings(trial_duration_s=1.0, verifications=verifications)
        return drive(rfc2544_throughput(1e5, 1e7, goals), forwarder).throughput_pps or 0.0

    assert find(0) < 6.9e6
    assert find(1) == pytest.approx(7e6, rel=0.002)


def test_a_throughput_that_the_generator_limits_is_told() -> None:
    forwarder = SimulatedForwarder(LossCurve(2e7), generator_max_pps=5e6)
    found = drive(rfc2544_throughput(1e5, 1e7, ThroughputSettings(trial_duration_s=1.0)), forwarder)
    assert found.limited_by_generator
    assert found.throughput_pps == pytest.approx(5e6, rel=0.01)


def test_the_loss_curve_ends_with_two_lossless_trials_in_a_row() -> None:
    forwarder = SimulatedForwarder(LossCurve(6.5e6))
    found = drive(frame_loss_rate(1e7, trial_duration_s=1.0), forwarder)
    assert [point.percent_of_max for point in found.points] == [100, 90, 80, 70, 60, 50]
    assert found.points[0].loss_ratio == pytest.approx(0.35, rel=1e-3)
    assert found.points[0].received_pps == pytest.approx(6.5e6, rel=1e-3)
    assert found.points[-1].delivery_ratio == 1.0
    assert found.lossless_pps == pytest.approx(6e6)
    whole = drive(frame_loss_rate(1e7, trial_duration_s=1.0, step_percent=5.0, whole=True), forwarder)
    assert len(whole.points) == 20
    with pytest.raises(ValueError, match="at most 10 %"):
        drive(frame_loss_rate(1e7, step_percent=20.0), forwarder)


def test_a_lossy_forwarder_has_no_lossless_rate_on_its_curve() -> None:
    found = drive(frame_loss_rate(1e7, 1.0), SimulatedForwarder(LossCurve(6e6, floor=0.01)))
    assert found.lossless_pps is None
    assert len(found.points) == 10


@given(buffer=st.integers(16, 20_000), share=st.floats(0.1, 0.9))
@settings(max_examples=60)
def test_back_to_back_finds_the_burst_that_the_buffer_holds(buffer: int, share: float) -> None:
    rate = 14.88e6
    forwarder = SimulatedForwarder(LossCurve(share * rate), buffer_frames=buffer)
    goals = BackToBackSettings(repetitions=2)
    found = drive(back_to_back(rate, share * rate, goals), forwarder)
    longest = buffer / (1.0 - share)
    assert found.average_frames == pytest.approx(longest, abs=2.0, rel=1e-6)
    # What the correction leaves is the buffer itself, at the rate of the line (RFC 9004 §6.4).
    assert found.corrected_buffer_s * rate == pytest.approx(buffer, abs=2.0)
    assert not found.at_limit


def test_bursts_are_followed_by_two_seconds_of_silence_and_by_more_after_long_ones() -> None:
    asked: list[tuple[int, float]] = []

    class Scripted:
        def measure(self, duration_s: float, load: object) -> Trial:
            raise AssertionError

        def burst(self, frames: int, load: float, quiet_s: float) -> Trial:
            asked.append((frames, quiet_s))
            lost = max(0, frames - 1000)
            return Trial(load, frames / load, frames, frames, frames - lost, lost)

    found = drive(back_to_back(1e6, 0.5e6, BackToBackSettings(repetitions=1, burst_s_max=10.0)), Scripted())
    assert found.average_frames == 1000
    assert found.trials == len(asked)
    assert asked[0] == (10_000_000, 10.0)
    assert min(quiet_s for _, quiet_s in asked) == 2.0


def test_a_back_to_back_result_at_its_limit_is_told_and_one_without_a_limit_refused() -> None:
    deep = SimulatedForwarder(LossCurve(5e5), buffer_frames=10_000_000)
    found = drive(back_to_back(1e6, 5e5, BackToBackSettings(repetitions=1, burst_s_max=1.0)), deep)
    assert found.at_limit
    with pytest.raises(ValueError, match="RFC 9004 §5"):
        drive(back_to_back(1e6, 1e6, BackToBackSettings()), deep)


def test_buffer_times_are_those_of_rfc_9004() -> None:
    implied, corrected = buffer_times_s(26_000, 5.35e6, 14.88e6)
    assert implied == pytest.approx(26_000 / 14.88e6)
    assert corrected == pytest.approx(implied * (14.88 - 5.35) / 14.88)


def test_a_measurer_that_cannot_send_bursts_says_so() -> None:
    class Plain:
        def measure(self, duration_s: float, load: object) -> Trial:
            raise AssertionError

    with pytest.raises(UnsupportedRequestError, match="bursts"):
        drive(back_to_back(1e6, 5e5, BackToBackSettings()), Plain())
