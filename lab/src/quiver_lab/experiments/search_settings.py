"""What may stand under `search:`; each part makes its search's settings."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from quiver_lab.search.back_to_back import BURST_S_HIGHEST, QUIET_S, BackToBackSettings
from quiver_lab.search.loss_curve import STEP_PERCENT_MAX
from quiver_lab.search.ndrpdr import NdrPdrSettings
from quiver_lab.search.pdr_finder import PdrFinderSettings
from quiver_lab.search.plrsearch import PlrSettings
from quiver_lab.search.reconfiguration import ReconfigurationSettings
from quiver_lab.search.throughput import ThroughputSettings

RFC_TRIAL_S = 60.0
"""RFC 2544 §24."""


class SearchPart(BaseModel):
    """A search's part of a scenario: immutable, and an unknown key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ThroughputPart(SearchPart):
    """RFC 2544 §26.1; `verifications` repeats lossy trials (TST 009)."""

    trial_duration_s: float = Field(default=RFC_TRIAL_S, gt=0, le=600)
    resolution: float = Field(default=0.001, gt=0, lt=1)
    verifications: int = Field(default=0, ge=0, le=100)

    def settings(self) -> ThroughputSettings:
        """The same for the search."""
        return ThroughputSettings(**self.model_dump())


class LossCurvePart(SearchPart):
    """RFC 2544 §26.3; `whole` goes on after two lossless trials."""

    trial_duration_s: float = Field(default=RFC_TRIAL_S, gt=0, le=600)
    step_percent: float = Field(default=STEP_PERCENT_MAX, ge=0.5, le=STEP_PERCENT_MAX)
    whole: bool = False


class BackToBackPart(SearchPart):
    """RFC 9004. It needs a throughput: RFC 2544's, or NDR, whichever was searched before."""

    repetitions: int = Field(default=50, ge=1, le=1000)
    burst_s_max: float = Field(default=2.0, gt=0, le=BURST_S_HIGHEST)
    frames_min: int = Field(default=1, ge=1)
    step_frames: int = Field(default=1, ge=1)
    verifications: int = Field(default=1, ge=0, le=100)
    quiet_s: float = Field(default=QUIET_S, ge=0, le=60)

    def settings(self) -> BackToBackSettings:
        """The same for the search."""
        return BackToBackSettings(**self.model_dump())


class SoakPart(SearchPart):
    """PLRsearch; the defaults are CSIT's half an hour."""

    loss_ratio: float = Field(default=1e-7, gt=0, lt=0.5)
    total_s: float = Field(default=1800.0, gt=0, le=86_400)
    first_trial_s: float = Field(default=5.1, gt=0, le=600)
    trial_increment_s: float = Field(default=0.1, ge=0, le=60)
    stop_at_relative_stdev: float | None = Field(default=None, gt=0, lt=1)

    @model_validator(mode="after")
    def _there_is_time_for_a_trial(self) -> Self:
        if self.total_s < self.first_trial_s:
            raise ValueError(f"total_s must be at least first_trial_s, {self.first_trial_s:g}")
        return self

    def settings(self) -> PlrSettings:
        """The same for the search."""
        return PlrSettings(**self.model_dump())


class ChangePart(SearchPart):
    """One change of the configuration, in the forwarder's own command lines, and what undoes it."""

    name: str = Field(min_length=1, max_length=60)
    make: tuple[str, ...] = Field(min_length=1)
    undo: tuple[str, ...] = ()


class ReconfigurationPart(SearchPart):
    """Changes under load, at NDR's lower bound; NDR is searched for if nothing knows it yet."""

    changes: tuple[ChangePart, ...] = Field(min_length=1)
    duration_s: float = Field(default=4.0, gt=0, le=600)
    change_at_s: float = Field(default=1.0, gt=0)
    repetitions: int = Field(default=5, ge=1, le=100)
    controls: int = Field(default=3, ge=1, le=100)
    load_share: float = Field(default=1.0, gt=0, le=1)

    @model_validator(mode="after")
    def _changes_lie_inside_and_differ(self) -> Self:
        if self.change_at_s >= self.duration_s:
            raise ValueError(f"change_at_s must be below duration_s, {self.duration_s:g}")
        names = [change.name for change in self.changes]
        if len(set(names)) < len(names):
            raise ValueError("changes: each needs a name of its own")
        return self

    def settings(self) -> ReconfigurationSettings:
        """The same for the search."""
        return ReconfigurationSettings(**self.model_dump(exclude={"changes"}))


class StatePart(SearchPart):
    """Forwarders that learn from traffic: what they know is made before the trials, or forgotten before
    each."""

    mode: Literal["ramp-up", "reset"]
    load_pps: float = Field(default=200_000.0, gt=0)
    """Of a ramp-up, both directions together; halved when frames are lost."""
    attempts: int = Field(default=3, ge=1, le=10)


RAMP_UP = StatePart(mode="ramp-up")
"""Of what has sessions, unless a file says otherwise: all of them are there before the trials."""


class LatencyCurvePart(SearchPart):
    """Latency from 5 % of PDR to beyond it."""

    duration_s: float = Field(default=1.0, gt=0, le=60)


class MrrSettings(SearchPart):
    """Maximum receive rate; CSIT's are 10 trials of 1 s."""

    trials: int = Field(default=10, ge=1, le=100)
    duration_s: float = Field(default=1.0, gt=0, le=60)


class NdrPdrPart(SearchPart):
    """MLRsearch; the defaults are CSIT's goals."""

    trial_duration_s: float = Field(default=1.0, gt=0, le=60)
    initial_trial_duration_s: float = Field(default=1.0, gt=0, le=60)
    duration_sum_s: float = Field(default=21.0, gt=0, le=3600)
    relative_width: float = Field(default=0.005, gt=0, lt=1)
    exceed_ratio: float = Field(default=0.5, ge=0, lt=1)
    preceding_targets: int = Field(default=2, ge=1, le=5)
    search_duration_max_s: float = Field(default=1200.0, gt=0)
    warmup_s: float = Field(default=1.0, ge=0, le=60)

    @model_validator(mode="after")
    def _durations_grow(self) -> Self:
        if not self.initial_trial_duration_s <= self.trial_duration_s <= self.duration_sum_s:
            raise ValueError(
                "initial_trial_duration_s ≤ trial_duration_s ≤ duration_sum_s must hold, not "
                f"{self.initial_trial_duration_s}, {self.trial_duration_s}, {self.duration_sum_s}"
            )
        return self

    def settings(self) -> NdrPdrSettings:
        """The same for the search."""
        return NdrPdrSettings(**self.model_dump())


class PdrFinderPart(SearchPart):
    """The PDR finder of SRPerf; bounds and accuracy in per cent of the line packet rate."""

    loss_threshold: float = Field(default=0.005, ge=0, lt=1)
    min_percent: float = Field(default=1.0, ge=0, lt=100)
    max_percent: float = Field(default=100.0, gt=0, le=100)
    accuracy_percent: float = Field(default=1.0, gt=0, le=50)
    trial_duration_s: float = Field(default=10.0, gt=0, le=60)
    near_ratio: float = Field(default=0.01, ge=0, lt=1)
    stdev_max: float = Field(default=0.002, ge=0, lt=1)
    repetitions_min: int = Field(default=3, ge=2, le=100)
    repetitions_max: int = Field(default=10, ge=2, le=100)
    line_rate_bps: float | None = Field(default=None, gt=0)
    """Bit rate of one port's line for equation 1. Memory has none: the rate is then taken from the
    highest that the generator was seen to get back (MRR), with a quarter above it."""

    @model_validator(mode="after")
    def _bounds_are_in_order(self) -> Self:
        if self.min_percent >= self.max_percent:
            raise ValueError(f"min_percent must be below max_percent, {self.max_percent:g}")
        if self.repetitions_min > self.repetitions_max:
            raise ValueError(f"repetitions_min must be at most repetitions_max, {self.repetitions_max}")
        return self

    def settings(self) -> PdrFinderSettings:
        """The same for the search."""
        return PdrFinderSettings(**self.model_dump(exclude={"line_rate_bps"}))


class LatencySettings(SearchPart):
    """Latency at shares of PDR; 0 means as good as no load."""

    percents_of_pdr: tuple[float, ...] = (10.0, 50.0, 90.0)
    csit: bool = False
    """No load, NDR and PDR as well: CSIT's six, in place of the shares above."""
    duration_s: float = Field(default=1.0, gt=0, le=60)


class TelemetrySettings(SearchPart):
    """Clocks per packet by node and drops, read around a trial of its own at the maximum rate."""

    duration_s: float = Field(default=1.0, gt=0, le=60)


class DisturbedSettings(SearchPart):
    """What is done about trials that the host disturbed, by evidence that does not know their loss."""

    repeats: int = Field(default=2, ge=0, le=20)
    """Such a trial is measured again at most so often; 0: it counts as it is, and the run is marked."""
    extra_share: float = Field(default=0.5, ge=0, le=10)
    """All repetitions together take at most this share of the time of the trials that count."""


class Searches(SearchPart):
    """What is asked; a search that is left out is not run."""

    mrr: MrrSettings = MrrSettings()
    ndrpdr: NdrPdrPart | None = NdrPdrPart()
    pdr_finder: PdrFinderPart | None = None
    latency: LatencySettings | None = LatencySettings()
    telemetry: TelemetrySettings | None = TelemetrySettings()
    throughput: ThroughputPart | None = None
    loss_curve: LossCurvePart | None = None
    back_to_back: BackToBackPart | None = None
    latency_curve: LatencyCurvePart | None = None
    soak: SoakPart | None = None
    reconfiguration: ReconfigurationPart | None = None
    state: StatePart | None = None
    warmup_s: float = Field(default=0.05, ge=0, le=10)
    """Traffic before each trial that is not counted."""
    disturbed: DisturbedSettings = DisturbedSettings()
