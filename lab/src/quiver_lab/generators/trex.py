"""TRex as a measurer: a server that runs elsewhere in stateless mode, two of its ports, trials one after the
other. It has met the tests' server, which speaks by TRex's specification; not yet a real one."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Self

from quiver_lab.generators.profile import Profile
from quiver_lab.generators.trex_rpc import RPC_PORT, STATELESS_API, TrexError, TrexRpc
from quiver_lab.generators.trex_streams import burst_of, measured_stream, streams_of
from quiver_lab.trials.measurement import DirectionCounts, Latency, Load, Trial

PROFILE_ID = "_"
ALL_CORES = (1 << 64) - 1
LIMITED_SHARE = 0.995
"""Below this share of what was asked for the generator was at its end, as quiver-tg has it."""
MEASURED_PPS = 9_000.0
"""Of the thin stream beside the load whose delay is measured: CSIT's."""
MEASURED_SHARE_MAX = 0.1
"""At low loads it is thinner."""
POLL_S = 0.02
GRACE_S = 10.0
"""How much longer than a trial its ports may say that they send."""
DRAIN_S = 0.1
"""For late frames, before counters are read."""
ENDED = ("IDLE", "STREAMS")
NS_PER_US = 1_000.0


@dataclass(frozen=True, slots=True)
class TrexPlace:
    """Where a TRex runs, and what of it may be used."""

    host: str
    port: int = RPC_PORT
    ports: tuple[int, ...] = (0, 1)
    """TRex's numbers of the ports that a profile calls 0, 1, …"""
    user: str = "quiver-lab"
    force: bool = False
    """Take the ports from whoever has them."""
    api: tuple[int, int] = STATELESS_API
    timeout_s: float = 5.0


@dataclass(frozen=True, slots=True)
class _Counts:
    """A port's counters."""

    sent: int
    received: int
    receive_errors: int

    def since(self, before: _Counts) -> _Counts:
        return _Counts(
            self.sent - before.sent,
            self.received - before.received,
            self.receive_errors - before.receive_errors,
        )


class Trex:
    """A measurer; use it as a context manager. Counts are those of the ports: a frame that is not of the
    trial, such as another machine's ARP, counts as received, up to what was sent."""

    def __init__(
        self, profile: Profile, place: TrexPlace, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        if len(place.ports) != len(profile.ports):
            raise TrexError(f"the profile has {len(profile.ports)} ports, and {len(place.ports)} were named")
        self._profile = profile
        self._place = place
        self._sleep = sleep
        self._rpc = TrexRpc(place.host, place.port, place.timeout_s)
        self._handlers: dict[int, str] = {}
        self._senders = sorted({stream.from_port for stream in profile.streams})
        self._loaded: object = None
        self.version = ""

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Reach it, take the ports, and forget what others left on them."""
        try:
            self._rpc.open(self._place.api)
            told = self._rpc.call("get_version")
            self.version = str(told.get("version", "")) if isinstance(told, dict) else ""
            for port in range(len(self._place.ports)):
                self._acquire(port)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Stop what still goes on and give the ports back; TRex goes on running."""
        for port in list(self._handlers):
            for method in ("stop_traffic", "remove_all_streams", "release"):
                with suppress(TrexError):
                    self._of_port(method, port)
        self._handlers.clear()
        self._rpc.close()

    def measure(self, duration_s: float, load: Load) -> Trial:
        """One trial; "max" is the ports' line rate."""
        self._load(None, load)
        if load == "max":
            factor = {"type": "percentage", "op": "abs", "value": 100.0}
        else:
            factor = {"type": "pps", "op": "abs", "value": load / len(self._senders)}
        intended = None if load == "max" else round(load * duration_s)
        return self._trial(load, duration_s, factor, intended)

    def burst(self, frames: int, load: Load, quiet_s: float) -> Trial:
        """So many frames at a load, divided among the ports that send."""
        if load == "max":
            raise TrexError("a burst is sent at a rate: its length in seconds follows from it")
        self._load(frames // len(self._senders), load)
        rate = {"type": "pps", "op": "abs", "value": load / len(self._senders)}
        whole = frames // len(self._senders) * len(self._senders)
        trial = self._trial(load, frames / load, rate, whole, ends_alone=True)
        self._sleep(quiet_s)
        return trial

    def _acquire(self, port: int) -> None:
        told = self._rpc.call(
            "acquire",
            port_id=self._place.ports[port],
            user=self._place.user,
            session_id=os.getpid(),
            force=self._place.force,
        )
        if not isinstance(told, str):
            raise TrexError(f"TRex gave port {self._place.ports[port]} without a handler: {told!r}")
        self._handlers[port] = told
        self._of_port("stop_traffic", port)
        self._of_port("remove_all_streams", port)

    def _of_port(self, method: str, port: int, **parameters: Any) -> Any:
        place = {"port_id": self._place.ports[port], "handler": self._handlers[port]}
        return self._rpc.call(method, **place, profile_id=PROFILE_ID, **parameters)

    def _load(self, frames: int | None, load: Load) -> None:
        """The streams of a trial, or of a burst of so many frames from each port, if they are not there."""
        measured_pps = MEASURED_PPS
        if load != "max":
            measured_pps = min(MEASURED_PPS, MEASURED_SHARE_MAX * load / len(self._senders))
        wanted = (frames, measured_pps)
        if wanted == self._loaded:
            return
        self._loaded = None
        for port in self._senders:
            self._of_port("remove_all_streams", port)
            streams = streams_of(self._profile, port)
            if frames is not None:
                if len(streams) > 1:
                    raise TrexError("a burst over TRex has frames of one size")
                streams = [burst_of(stream, frames) for stream in streams]
            elif (thin := measured_stream(self._profile, port, _pg_id(port), measured_pps)) is not None:
                streams.append(thin)
            for number, stream in enumerate(streams, 1):
                self._of_port("add_stream", port, stream_id=number, stream=stream)
        self._loaded = wanted

    def _trial(
        self,
        load: Load,
        duration_s: float,
        factor: Mapping[str, Any],
        intended: int | None,
        *,
        ends_alone: bool = False,
    ) -> Trial:
        before, delays = self._counters(), self._delays()
        began = time.monotonic()
        for port in self._senders:
            self._of_port(
                "start_traffic",
                port,
                mul=factor,
                duration=-1.0 if ends_alone else duration_s,
                force=True,
                core_mask=ALL_CORES,
                start_at_ts=0,
            )
        self._wait(began + duration_s)
        self._sleep(DRAIN_S)
        after = self._counters()
        trial = self._counted(
            load, duration_s, intended, [a.since(b) for a, b in zip(after, before, strict=True)]
        )
        latency = _latency(_difference(self._delays(), delays))
        for port in self._senders:
            self._of_port("remove_rx_filters", port)
        return replace(trial, latency=latency)

    def _wait(self, until: float) -> None:
        """Until no port sends any more."""
        self._sleep(max(0.0, until - time.monotonic()))
        deadline = max(until, time.monotonic()) + GRACE_S
        for place in (self._place.ports[port] for port in self._senders):
            while (state := self._state(place)) not in ENDED:
                if time.monotonic() > deadline:
                    raise TrexError(f"TRex's port {place} is still {state} after the trial")
                self._sleep(POLL_S)

    def _state(self, place: int) -> str:
        told = self._rpc.call("get_port_status", port_id=place, profile_id=PROFILE_ID)
        return str(told.get("state")) if isinstance(told, dict) else repr(told)

    def _counters(self) -> list[_Counts]:
        found = []
        for port in self._place.ports:
            told = self._rpc.call("get_port_stats", port_id=port)
            try:
                found.append(_Counts(*(int(told[key]) for key in ("opackets", "ipackets", "ierrors"))))
            except (KeyError, TypeError, ValueError) as error:
                raise TrexError(
                    f"TRex's counters of port {port} cannot be understood: {told!r:.120}"
                ) from error
        return found

    def _counted(
        self, load: Load, duration_s: float, intended: int | None, counts: Sequence[_Counts]
    ) -> Trial:
        if any(min(one.sent, one.received, one.receive_errors) < 0 for one in counts):
            raise TrexError("TRex's counters went backwards during a trial: it was started anew, or cleared")
        directions = []
        for from_port, to_port in sorted({(one.from_port, one.to) for one in self._profile.streams}):
            sent = counts[from_port].sent
            received = min(sent, counts[to_port].received)
            directions.append(DirectionCounts(from_port, to_port, sent, received, sent - received))
        offered = sum(one.offered for one in directions)
        received = sum(one.received for one in directions)
        wanted = offered if intended is None else intended
        limit = None
        if offered < LIMITED_SHARE * wanted or (load == "max" and received == offered):
            limit = "transmit"
        elif any(one.receive_errors for one in counts):
            limit = "receive"
        return Trial(
            load=load,
            duration_s=duration_s,
            intended=wanted,
            offered=offered,
            received=received,
            lost=offered - received,
            limited_by_generator=limit is not None,
            limit=limit,
            directions=tuple(directions),
        )

    def _delays(self) -> dict[float, int]:
        """Frames by delay, microseconds, of all measured streams since they were added."""
        ids = [_pg_id(port) for port in self._senders]
        told = self._rpc.call("get_pgid_stats", pgids=ids)
        found: dict[float, int] = {}
        per_stream = told.get("latency") if isinstance(told, dict) else None
        for pg_id in ids:
            stream = (per_stream or {}).get(str(pg_id), {})
            for least_us, count in (stream.get("lat", {}).get("histogram") or {}).items():
                found[float(least_us)] = found.get(float(least_us), 0) + int(count)
        return found


def _pg_id(port: int) -> int:
    """TRex's number of a port's measured stream."""
    return 1_000 + port


def _difference(after: Mapping[float, int], before: Mapping[float, int]) -> dict[float, int]:
    """Frames of one trial; streams that were added anew begin at nothing."""
    found = {delay: count - before.get(delay, 0) for delay, count in after.items()}
    if any(count < 0 for count in found.values()):
        found = dict(after)
    return {delay: count for delay, count in sorted(found.items()) if count > 0}


def _latency(histogram: Mapping[float, int]) -> Latency | None:
    """Percentiles of TRex's histogram, whose columns have the width of their own first digit: a delay is at
    least what is said."""
    total = sum(histogram.values())
    if total == 0:
        return None

    def percentile_ns(share: float) -> float:
        left = share * total
        for delay, count in histogram.items():
            left -= count
            if left <= 0:
                return delay * NS_PER_US
        return max(histogram) * NS_PER_US

    mean = sum(delay * count for delay, count in histogram.items()) / total
    return Latency(
        count=total,
        min_ns=min(histogram) * NS_PER_US,
        p50_ns=percentile_ns(0.5),
        p90_ns=percentile_ns(0.9),
        p99_ns=percentile_ns(0.99),
        p99_9_ns=percentile_ns(0.999),
        max_ns=max(histogram) * NS_PER_US,
        mean_ns=mean * NS_PER_US,
    )
