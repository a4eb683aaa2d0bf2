"""A scenario's searches after MRR, NDR, PDR and latency, each only if it is asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from quiver_lab.experiments.search_settings import Searches
from quiver_lab.results.model import ScenarioResult
from quiver_lab.search.back_to_back import back_to_back
from quiver_lab.search.latency import latency_curve
from quiver_lab.search.loss_curve import frame_loss_rate
from quiver_lab.search.plrsearch import plr_search
from quiver_lab.search.reconfiguration import ndr_to_hold, reconfigure
from quiver_lab.search.throughput import rfc2544_throughput
from quiver_lab.trials.measurement import Measurer, drive


class NoRateError(ValueError):
    """A search needs a rate that no search before it has found."""


@dataclass(frozen=True)
class LaterPhases:
    """What they share."""

    searches: Searches
    measurer: Measurer
    result: ScenarioResult
    begin: Callable[[str], None]
    min_load_pps: float
    max_load_pps: float
    """Between these every rate is looked for; the upper one is the line packet rate where there is a line."""

    def run(self) -> None:
        """All that are asked for, each after those that it builds on."""
        self._rfc_2544()
        self._back_to_back()
        self._latency_curve()
        self._soak()
        self._reconfiguration()

    def _rfc_2544(self) -> None:
        if (part := self.searches.throughput) is not None:
            self.begin("RFC 2544 throughput")
            plan = rfc2544_throughput(self.min_load_pps, self.max_load_pps, part.settings())
            self.result.throughput = drive(plan, self.measurer)
        if (curve := self.searches.loss_curve) is not None:
            self.begin("frame loss rate")
            self.result.loss_curve = drive(
                frame_loss_rate(self.max_load_pps, curve.trial_duration_s, curve.step_percent, curve.whole),
                self.measurer,
            )

    def _back_to_back(self) -> None:
        part = self.searches.back_to_back
        if part is None:
            return
        self.begin("back-to-back frames")
        found = self.result.throughput
        throughput = found.throughput_pps if found is not None else self.result.ndr_pps
        if throughput is None:
            raise NoRateError("back_to_back needs a throughput without loss: search throughput or ndrpdr too")
        if throughput >= self.max_load_pps:
            raise NoRateError(
                "back_to_back: the throughput is the maximum rate, so that no burst fills a buffer"
            )
        plan = back_to_back(self.max_load_pps, throughput, part.settings())
        self.result.back_to_back = drive(plan, self.measurer)

    def _latency_curve(self) -> None:
        part = self.searches.latency_curve
        if part is None:
            return
        self.begin("latency against load")
        pdr = self.result.pdr_pps or (self.result.pdr_finder.lower_pps if self.result.pdr_finder else None)
        if not pdr:
            raise NoRateError("latency_curve needs PDR: search ndrpdr or pdr_finder too")
        self.result.latency_curve = drive(latency_curve(pdr, part.duration_s), self.measurer)

    def _soak(self) -> None:
        if (part := self.searches.soak) is not None:
            self.begin("soak")
            plan = plr_search(self.min_load_pps, self.max_load_pps, part.settings())
            self.result.soak = drive(plan, self.measurer)

    def _reconfiguration(self) -> None:
        part = self.searches.reconfiguration
        if part is None:
            return
        load = self.result.ndr_pps
        if load is None:
            self.begin("NDR to hold")
            load = drive(ndr_to_hold(self.min_load_pps, self.max_load_pps), self.measurer).lower_pps
        if load is None:
            raise NoRateError("reconfiguration holds NDR, and every rate that was tried lost frames")
        for change in part.changes:
            self.begin(f"reconfiguration: {change.name}")
            plan = reconfigure(load, change.name, part.settings())
            self.result.reconfigurations.append(drive(plan, self.measurer))
