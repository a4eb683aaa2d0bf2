"""A forwarder with a known loss curve, noise, stalls and memory: every search must find its answer."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from quiver_lab.trials.measurement import ChangeTiming, Latency, Load, Setup, Stalls, Trial

LOADS_MAX_PPS = 1e12
NORMAL_APPROXIMATION_MIN = 1e6
"""A Poisson count above this mean is drawn from the normal distribution."""


@dataclass(frozen=True, slots=True)
class LossCurve:
    """Expected loss against load: none (or a floor) up to the capacity, then what exceeds it."""

    capacity_pps: float
    floor: float = 0.0
    """Share that is lost at any load (a Linux-like forwarder): NDR is then zero."""
    collapse: float = 0.0
    """Overload costs capacity: each doubling of the load beyond it takes this share away."""
    jitter: float = 0.0
    """Standard deviation of the capacity within a trial, as a share of it: the average loss rate near the
    capacity is then a smooth curve (the erf function of PLRsearch), and losses are Poisson."""

    def loss_ratio(self, load_pps: float) -> float:
        """Expected share of frames lost at a load."""
        if load_pps <= 0.0:
            return self.floor
        if self.jitter > 0.0:
            excess = self._expected_excess(load_pps) / load_pps
        elif load_pps <= self.capacity_pps:
            excess = 0.0
        else:
            served: float = self.capacity_pps * (1.0 - self.collapse) ** math.log2(
                load_pps / self.capacity_pps
            )
            excess = 1.0 - served / load_pps
        return self.floor + (1.0 - self.floor) * excess

    def _expected_excess(self, load_pps: float) -> float:
        """E max(0, load - C) for a normal C: what an unsteady capacity loses of a steady load."""
        deviation = self.jitter * self.capacity_pps
        z = (load_pps - self.capacity_pps) / deviation
        density = math.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)
        return deviation * (z * 0.5 * math.erfc(-z / math.sqrt(2.0)) + density)

    def rate_at(self, loss_ratio: float) -> float:
        """The highest load whose expected loss is at most `loss_ratio`: the answer to find."""
        if self.loss_ratio(0.0) > loss_ratio:
            return 0.0
        low, high = 0.0, LOADS_MAX_PPS
        for _ in range(200):
            middle = (low + high) / 2.0
            low, high = (middle, high) if self.loss_ratio(middle) <= loss_ratio else (low, middle)
        return low


@dataclass
class SimulatedForwarder:
    """A measurer without a network: seeded, so that a run can be repeated. It can do all that a search
    may ask for: trials, bursts, changes under load, other configurations, and to forget its state."""

    curve: LossCurve
    noise: float = 0.0
    """Standard deviation of the capacity from trial to trial, as a share of it."""
    stalls_per_s: float = 0.0
    stall_s: float = 0.0
    """How long the forwarder stands still at a stall."""
    host_stalls_per_s: float = 0.0
    """How often the host takes the generator's core away: the generator knows, and sends too fast after."""
    host_stall_s: float = 0.0
    buffer_frames: int = 2048
    """Frames that wait out a stall in the rings, or are held of a burst, before any is lost."""
    generator_max_pps: float = 50e6
    base_latency_ns: float = 4_000.0
    seed: int = 1
    hysteresis_frames: int = 0
    """A trial after an overloaded one begins with full buffers, and loses so many frames."""
    blocked_s: float = 0.0
    """How long it stands still at a change of its configuration."""
    blocked_by_change: Mapping[str, float] = field(default_factory=dict)
    """The same, where a change has a time of its own."""
    cold_s: float = 0.0
    """After its state was dropped, so long all frames go a way that has half the capacity."""
    capacity_by_setup: Mapping[Setup, float] = field(default_factory=dict)
    """Frames per second with other configurations; one that is not here has the curve's capacity."""
    trials: list[Trial] = field(default_factory=list)
    setup: Setup = ()
    resets: int = 0

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self._overloaded = False
        self._cold_left_s = self.cold_s
        self._first_curve = self.curve

    def configure(self, setup: Setup) -> None:
        """Be another forwarder."""
        if setup == self.setup:
            return
        self.setup = setup
        capacity = self.capacity_by_setup.get(setup, self._first_curve.capacity_pps)
        self.curve = replace(self._first_curve, capacity_pps=capacity)
        self.forget_state()

    def forget_state(self) -> None:
        """Be cold again."""
        self.resets += 1
        self._cold_left_s = self.cold_s

    def measure(self, duration_s: float, load: Load) -> Trial:
        """One simulated trial; takes no time."""
        capacity = self._capacity()
        trial = (
            self._flat_out(duration_s, capacity) if load == "max" else self._paced(duration_s, load, capacity)
        )
        return self._keep(trial)

    def burst(self, frames: int, load: Load, quiet_s: float) -> Trial:
        """A burst into an empty buffer that is served meanwhile; `quiet_s` empties it again."""
        rate = self.generator_max_pps if load == "max" else min(load, self.generator_max_pps)
        duration_s = frames / rate
        served = self._capacity() * duration_s
        lost = min(frames, max(0, math.ceil(frames - served - self.buffer_frames)))
        self._overloaded = lost > 0 and quiet_s <= 0.0
        trial = self._trial(
            rate if load == "max" else load,
            duration_s,
            intended=frames,
            offered=frames,
            lost=lost,
            utilisation=1.0,
        )
        self.trials.append(trial)
        return trial

    def measure_change(self, duration_s: float, load: Load, change: str, change_at_s: float) -> Trial:
        """A trial in which the forwarder stands still once."""
        if load == "max":
            raise ValueError("a change is measured at a rate, not at the maximum")
        trial = self._paced(duration_s, load, self._capacity())
        blocked_s = self.blocked_by_change.get(change, self.blocked_s)
        lost = max(0, round(trial.offered_pps * blocked_s) - self.buffer_frames)
        lost = min(trial.offered, trial.lost + lost)
        timing = ChangeTiming(began_s=change_at_s, took_s=blocked_s)
        return self._keep(replace(trial, lost=lost, received=trial.offered - lost, change=timing))

    def _capacity(self) -> float:
        return self.curve.capacity_pps * max(0.01, 1.0 + self._random.gauss(0.0, self.noise))

    def _keep(self, trial: Trial) -> Trial:
        """Remember the trial, and what it did to the forwarder."""
        self._overloaded = trial.load == "max" or trial.offered_pps > self.curve.capacity_pps
        self._cold_left_s = max(0.0, self._cold_left_s - trial.duration_s)
        self.trials.append(trial)
        return trial

    def _paced(self, duration_s: float, load_pps: float, capacity: float) -> Trial:
        intended = round(load_pps * duration_s)
        offered = min(intended, round(self.generator_max_pps * duration_s))
        offered_pps = offered / duration_s
        curve = replace(self.curve, capacity_pps=capacity)
        cold_s = min(self._cold_left_s, duration_s)
        cold = replace(curve, capacity_pps=capacity / 2.0)
        ratio = (
            cold_s * cold.loss_ratio(offered_pps) + (duration_s - cold_s) * curve.loss_ratio(offered_pps)
        ) / duration_s
        lost = self._count(offered * ratio)
        for _ in range(self._arrivals(self.stalls_per_s, duration_s)):
            lost += max(0, round(offered_pps * self.stall_s) - self.buffer_frames)
        away = self._arrivals(self.host_stalls_per_s, duration_s)
        lost += away * max(0, round(offered_pps * self.host_stall_s) - self.buffer_frames)
        if self._overloaded:
            lost += self.hysteresis_frames
        return self._trial(
            load_pps,
            duration_s,
            intended=intended,
            offered=offered,
            lost=min(lost, offered),
            utilisation=offered_pps / capacity,
            stalls=self._stalls(away),
        )

    def _stalls(self, count: int) -> Stalls:
        return Stalls(count, count * self.host_stall_s, self.host_stall_s if count else 0.0)

    def _count(self, expected: float) -> int:
        """Frames lost of an expected number: the number itself, or Poisson where the capacity is unsteady."""
        if self.curve.jitter <= 0.0:
            return math.floor(expected) + (self._random.random() < expected % 1.0)
        if expected > NORMAL_APPROXIMATION_MIN:
            return max(0, round(self._random.gauss(expected, math.sqrt(expected))))
        count, left = 0, expected
        while left > 0.0:
            step = min(left, 500.0)
            limit, product = math.exp(-step), self._random.random()
            while product > limit:
                count, product = count + 1, product * self._random.random()
            left -= step
        return count

    def _trial(
        self,
        load_pps: float,
        duration_s: float,
        *,
        intended: int,
        offered: int,
        lost: int,
        utilisation: float,
        stalls: Stalls | None = None,
    ) -> Trial:
        limited = offered < 0.995 * intended
        return Trial(
            load=load_pps,
            duration_s=duration_s,
            intended=intended,
            offered=offered,
            received=offered - lost,
            lost=lost,
            limited_by_generator=limited,
            limit="transmit" if limited else None,
            latency=self._latency(utilisation, offered),
            stalls=stalls,
        )

    def _flat_out(self, duration_s: float, capacity: float) -> Trial:
        away = self._arrivals(self.host_stalls_per_s, duration_s)
        sending_s = max(0.0, duration_s - away * self.host_stall_s)
        offered = round(min(capacity, self.generator_max_pps) * sending_s)
        received = round(offered * (1.0 - self.curve.floor))
        limited = self.generator_max_pps < capacity
        return Trial(
            load="max",
            duration_s=duration_s,
            intended=offered,
            offered=offered,
            received=received,
            lost=offered - received,
            limited_by_generator=limited,
            limit="transmit" if limited else None,
            latency=self._latency(1.0, offered),
            stalls=self._stalls(away),
        )

    def _arrivals(self, per_s: float, duration_s: float) -> int:
        """How many of what happens so often fall into a trial (Poisson, by waiting times)."""
        if per_s <= 0.0:
            return 0
        count, at = 0, self._random.expovariate(per_s)
        while at < duration_s:
            count, at = count + 1, at + self._random.expovariate(per_s)
        return count

    def _latency(self, utilisation: float, offered: int) -> Latency:
        """A queue's shape: waiting grows as 1 / (1 - utilisation), up to full buffers."""
        waiting = min(1.0 / max(1.0 - utilisation, 0.02), 50.0) * 250.0
        base = self.base_latency_ns
        return Latency(
            count=max(1, offered // 16),
            min_ns=base,
            p50_ns=base + waiting,
            p90_ns=base + 2.3 * waiting,
            p99_ns=base + 4.6 * waiting,
            p99_9_ns=base + 6.9 * waiting + 2_000.0,
            max_ns=base + 14.0 * waiting + 9_000.0,
            mean_ns=base + 1.1 * waiting,
        )
