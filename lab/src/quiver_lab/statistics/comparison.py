"""A against B: interleaved in one run (ABBA), or from two runs; effect, certainty, and a plain verdict."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy

from quiver_lab.statistics.rank_intervals import Shift, cliffs_delta, independent_shift, paired_shift
from quiver_lab.statistics.summary import CONFIDENCE, Interval

SIGNIFICANCE = 0.05
ROUNDS_MIN = 6
"""With fewer rounds even the clearest result has a p-value above 0.05 (2 / 2^n)."""
PERMUTATIONS = 9999
PERMUTATION_SEED = 2544

Better = Literal["more", "less"]
"""Whether a larger figure is the better one: packets per second, or nanoseconds."""
Outcome = Literal["better", "worse", "no difference shown", "below the noise floor", "too few rounds"]


def abba(rounds: int) -> list[Literal["A", "B"]]:
    """The order of measurements: A B B A, again and again. Whatever drifts evenly falls out of a round."""
    if rounds < 1:
        raise ValueError(f"there must be at least one round, not {rounds}")
    return ["A", "B", "B", "A"] * rounds


@dataclass(frozen=True, slots=True)
class AbbaRound:
    """The four figures of one round, in the order in which they were measured; all positive."""

    first_a: float
    first_b: float
    second_b: float
    second_a: float

    @property
    def log_ratio(self) -> float:
        """Mean of log B less mean of log A: a linear drift cancels."""
        return (math.log(self.first_b * self.second_b) - math.log(self.first_a * self.second_a)) / 2.0


@dataclass(frozen=True, slots=True)
class Comparison:
    """How B stands to A."""

    outcome: Outcome
    verdict: str
    """One sentence for a reader."""
    effect: float
    """B over A less 1 (Hodges-Lehmann on logarithms): 0.02 is two per cent more."""
    effect_ci95: Interval | None
    p_value: float
    """Probability of an effect like this between two that are the same: by permutation."""
    wilcoxon_p_value: float
    """The same by ranks (signed ranks for rounds, Mann-Whitney for independent samples)."""
    cliffs_delta: float
    """-1: every B below every A; 1: every B above."""
    noise_floor: float | None
    measurements: int


def _relative(log_shift: Shift) -> tuple[float, Interval | None]:
    interval = log_shift.interval
    ends = None if interval is None else Interval(math.expm1(interval.lower), math.expm1(interval.upper))
    return math.expm1(log_shift.estimate), ends


def _percent(share: float) -> str:
    """Two figures that mean something, and no "-0.00"."""
    digits = 2 if abs(share) < 0.01 else 1
    text = f"{100.0 * share:.{digits}f}"
    return text.lstrip("-") if float(text) == 0.0 else text


def _words(effect: float, better: Better) -> str:
    if better == "more":
        return "faster" if effect > 0.0 else "slower"
    return "lower" if effect < 0.0 else "higher"


@dataclass(frozen=True, slots=True)
class _Evidence:
    effect: float
    interval: Interval | None
    p_value: float
    names: tuple[str, str]
    better: Better
    noise_floor: float | None
    enough: bool

    def outcome(self) -> Outcome:
        if not self.enough:
            return "too few rounds"
        if self.p_value > SIGNIFICANCE or (self.interval is not None and self.interval.contains(0.0)):
            return "no difference shown"
        if self.noise_floor is not None and abs(self.effect) <= self.noise_floor:
            return "below the noise floor"
        return "better" if (self.effect > 0.0) == (self.better == "more") else "worse"

    def verdict(self) -> str:
        one, other = self.names
        size = _percent(abs(self.effect))
        between = ""
        if self.interval is not None:
            between = f"between {_percent(self.interval.lower)} and {_percent(self.interval.upper)} %"
        match self.outcome():
            case "too few rounds":
                return (
                    f"Too few rounds to tell {other} from {one}: at least {ROUNDS_MIN} are needed; "
                    f"so far {other} is {size} % {_words(self.effect, self.better)}."
                )
            case "no difference shown":
                range_of = f"; if there is one, it lies {between}" if between else ""
                return (
                    f"No difference between {one} and {other} was shown (p = {self.p_value:.2g}){range_of}."
                )
            case "below the noise floor":
                return (
                    f"{other} is {size} % {_words(self.effect, self.better)} than {one}, but this host shows "
                    f"up to {_percent(self.noise_floor or 0.0)} % between two that are the same: no finding."
                )
            case _:
                return (
                    f"{other} is {size} % {_words(self.effect, self.better)} than {one} "
                    f"({between}, 95 % confidence; p = {self.p_value:.2g})."
                )


def _check(values: Sequence[float]) -> None:
    if any(not (math.isfinite(value) and value > 0.0) for value in values):
        raise ValueError("figures to compare must be positive numbers: leave out what failed, and say so")


def compare_rounds(
    rounds: Sequence[AbbaRound],
    names: tuple[str, str] = ("A", "B"),
    better: Better = "more",
    noise_floor: float | None = None,
) -> Comparison:
    """Rounds of ABBA, each its own pair: the sign of every round's difference is what chance could flip."""
    if not rounds:
        raise ValueError("there is no round to compare")
    in_a = [value for one in rounds for value in (one.first_a, one.second_a)]
    in_b = [value for one in rounds for value in (one.first_b, one.second_b)]
    _check(in_a + in_b)
    differences = np.array([one.log_ratio for one in rounds])
    effect, interval = _relative(paired_shift([float(value) for value in differences]))
    if len(rounds) < 2 or not differences.any():
        p_value = wilcoxon = 1.0
    else:
        p_value = float(
            scipy.stats.permutation_test(
                (differences,),
                np.mean,
                permutation_type="samples",
                n_resamples=PERMUTATIONS,
                rng=np.random.default_rng(PERMUTATION_SEED),
                vectorized=True,
            ).pvalue
        )
        wilcoxon = float(scipy.stats.wilcoxon(differences).pvalue)
    evidence = _Evidence(effect, interval, p_value, names, better, noise_floor, len(rounds) >= ROUNDS_MIN)
    return Comparison(
        outcome=evidence.outcome(),
        verdict=evidence.verdict(),
        effect=effect,
        effect_ci95=interval,
        p_value=p_value,
        wilcoxon_p_value=wilcoxon,
        cliffs_delta=cliffs_delta(in_a, in_b),
        noise_floor=noise_floor,
        measurements=4 * len(rounds),
    )


def compare_independent(
    first: Sequence[float],
    second: Sequence[float],
    names: tuple[str, str] = ("A", "B"),
    better: Better = "more",
    noise_floor: float | None = None,
) -> Comparison:
    """Two runs that were not interleaved, such as one from another machine: whatever else differed between
    them is in the effect too."""
    _check([*first, *second])
    log_first, log_second = ([math.log(value) for value in values] for values in (first, second))
    effect, interval = _relative(independent_shift(log_first, log_second))
    if len({*first, *second}) == 1:
        p_value = ranks = 1.0
    else:
        p_value = float(
            scipy.stats.permutation_test(
                (np.array(log_first), np.array(log_second)),
                lambda one, two, axis: np.mean(two, axis=axis) - np.mean(one, axis=axis),
                n_resamples=PERMUTATIONS,
                rng=np.random.default_rng(PERMUTATION_SEED),
                vectorized=True,
            ).pvalue
        )
        ranks = float(scipy.stats.mannwhitneyu(second, first).pvalue)
    evidence = _Evidence(effect, interval, p_value, names, better, noise_floor, interval is not None)
    return Comparison(
        outcome=evidence.outcome(),
        verdict=evidence.verdict(),
        effect=effect,
        effect_ci95=interval,
        p_value=p_value,
        wilcoxon_p_value=ranks,
        cliffs_delta=cliffs_delta(first, second),
        noise_floor=noise_floor,
        measurements=len(first) + len(second),
    )


@dataclass(frozen=True, slots=True)
class NoiseFloor:
    """What ABBA shows on this host between two that are the same."""

    relative: float
    """Effects up to this size are no finding: the 95th percentile of what chance makes of as many rounds."""
    coefficient_of_variation: float
    """Of the single figures."""
    bias: float
    """The effect that was measured between the two: should be nothing."""
    rounds: int


def chance_floor(log_ratios: Sequence[float], seed: int = PERMUTATION_SEED) -> float:
    """The effect that chance stays below in 95 of 100 runs of as many rounds, by drawing the rounds of two
    that are the same again, with either sign."""
    if len(log_ratios) < ROUNDS_MIN:
        raise ValueError(f"a noise floor needs at least {ROUNDS_MIN} rounds, not {len(log_ratios)}")
    chance = np.random.default_rng(seed)
    drawn = chance.choice(np.array(log_ratios), size=(PERMUTATIONS, len(log_ratios)))
    drawn = drawn * chance.choice([-1.0, 1.0], size=drawn.shape)
    effects = np.abs(np.expm1(np.median(drawn, axis=1)))
    return float(np.quantile(effects, CONFIDENCE))


def noise_floor(rounds: Sequence[AbbaRound], seed: int = PERMUTATION_SEED) -> NoiseFloor:
    """Learn the floor from rounds in which A and B are the same (A against A), by drawing rounds again with
    either sign: which of the two is called A is chance."""
    if len(rounds) < ROUNDS_MIN:
        raise ValueError(f"a noise floor needs at least {ROUNDS_MIN} rounds, not {len(rounds)}")
    differences = np.array([one.log_ratio for one in rounds])
    values = [v for one in rounds for v in (one.first_a, one.first_b, one.second_b, one.second_a)]
    _check(values)
    return NoiseFloor(
        relative=chance_floor([float(value) for value in differences], seed),
        coefficient_of_variation=float(np.std(values, ddof=1) / np.mean(values)),
        bias=compare_rounds(rounds).effect,
        rounds=len(rounds),
    )
