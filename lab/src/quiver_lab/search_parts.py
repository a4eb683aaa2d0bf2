"""What may stand under `search:` beside MRR, NDR, PDR and latency; each makes its search's settings."""

from __future__ import annotations

from typing import Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from quiver_lab.search.back_to_back import BURST_S_HIGHEST, QUIET_S, BackToBackSettings
from quiver_lab.search.loss_curve import STEP_PERCENT_MAX
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


class LatencyCurvePart(SearchPart):
    """Latency from 5 % of PDR to beyond it."""

    duration_s: float = Field(default=1.0, gt=0, le=60)
