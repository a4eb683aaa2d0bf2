"""A forwarder with a known loss curve, noise and stalls, on which every search must find the answer."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field

from quiver_lab.measurement import Latency, Load, Trial

LOADS_MAX_PPS = 1e12


@dataclass(frozen=True, slots=True)
class LossCurve:
    """Expected loss against load: none (or a floor) up to the capacity, then what exceeds it."""

    capacity_pps: float
    floor: float = 0.0
    """Share that is lost at any load (a Linux-like forwarder): NDR is then zero."""
    collapse: float = 0.0
    """Overload costs capacity: each doubling of the load beyond it takes this share away."""

    def loss_ratio(self, load_pps: float) -> float:
        """Expected share of frames lost at a load."""
        if load_pps <= self.capacity_pps:
            return self.floor
        served: float = self.capacity_pps * (1.0 - self.collapse) ** math.log2(load_pps / self.capacity_pps)
        return self.floor + (1.0 - self.floor) * (1.0 - served / load_pps)

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
    """A measurer without a network: seeded, so that a run can be repeated."""

    curve: LossCurve
    noise: float = 0.0
    """Standard deviation of the capacity from trial to trial, as a share of it."""
    stalls_per_s: float = 0.0
    stall_s: float = 0.0
    """How long the forwarder stands still at a stall."""
    buffer_frames: int = 2048
    """Frames that wait out a stall in the rings before any is lost."""
    generator_max_pps: float = 50e6
    base_latency_ns: float = 4_000.0
    seed: int = 1
    trials: list[Trial] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)

    def measure(self, duration_s: float, load: Load) -> Trial:
        """One simulated trial; takes no time."""
        capacity = self.curve.capacity_pps * max(0.01, 1.0 + self._random.gauss(0.0, self.noise))
        trial = (
            self._flat_out(duration_s, capacity) if load == "max" else self._paced(duration_s, load, capacity)
        )
        self.trials.append(trial)
        return trial

    def _paced(self, duration_s: float, load_pps: float, capacity: float) -> Trial:
        intended = round(load_pps * duration_s)
        offered = min(intended, round(self.generator_max_pps * duration_s))
        offered_pps = offered / duration_s
        curve = LossCurve(capacity, self.curve.floor, self.curve.collapse)
        expected = offered * curve.loss_ratio(offered_pps)
        lost = math.floor(expected) + (self._random.random() < expected % 1.0)
        for _ in range(self._stalls(duration_s)):
            lost += max(0, round(offered_pps * self.stall_s) - self.buffer_frames)
        lost = min(lost, offered)
        return Trial(
            load=load_pps,
            duration_s=duration_s,
            intended=intended,
            offered=offered,
            received=offered - lost,
            lost=lost,
            limited_by_generator=offered < 0.995 * intended,
            limit="transmit" if offered < 0.995 * intended else None,
            latency=self._latency(offered_pps / capacity, offered),
        )

    def _flat_out(self, duration_s: float, capacity: float) -> Trial:
        offered = round(min(capacity, self.generator_max_pps) * duration_s)
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
        )

    def _stalls(self, duration_s: float) -> int:
        """How many stalls fall into a trial (Poisson, by waiting times)."""
        if self.stalls_per_s <= 0.0:
            return 0
        count, at = 0, self._random.expovariate(self.stalls_per_s)
        while at < duration_s:
            count, at = count + 1, at + self._random.expovariate(self.stalls_per_s)
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
