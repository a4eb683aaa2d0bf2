"""Drives quiver-tg: one process a session, one JSON object a line in both directions."""

from __future__ import annotations

import json
import os
import select
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from quiver_lab.generators.profile import Profile
from quiver_lab.measurement import DirectionCounts, Latency, Load, Trial
from quiver_lab.processes import ProcessError, find_binary, last_words, pause, resume, start, stop

REPLY_GRACE_S = 15.0
"""How much longer than the trial itself a reply may take."""
REPLY_BYTES_MAX = 1 << 20


class GeneratorError(RuntimeError):
    """The generator refused, died, or said what cannot be."""


class _Reply(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class LatencyReply(_Reply):
    """Latency as quiver-tg prints it."""

    count: int = 0
    min_ns: float = Field(alias="min")
    p50_ns: float = Field(alias="p50")
    p90_ns: float = Field(alias="p90")
    p99_ns: float = Field(alias="p99")
    p99_9_ns: float = Field(alias="p99.9")
    max_ns: float = Field(alias="max")
    mean_ns: float = Field(alias="mean")

    def latency(self) -> Latency:
        """The same for the seam."""
        return Latency(**self.model_dump())


class DirectionReply(_Reply):
    """One direction's counts."""

    from_port: int = Field(alias="from")
    to_port: int = Field(alias="to")
    offered: int = Field(ge=0)
    received: int = Field(ge=0)
    lost: int


class MeasureReply(_Reply):
    """One trial's counts."""

    intended: int = Field(ge=0)
    offered: int = Field(ge=0)
    received: int = Field(ge=0)
    lost: int
    reordered: int = Field(default=0, ge=0)
    duplicated: int = Field(default=0, ge=0)
    duration_s: float = Field(gt=0)
    limited_by_generator: bool = False
    limit: str | None = None
    latency_ns: LatencyReply | None = None
    per_direction: tuple[DirectionReply, ...] = ()

    def trial(self, load: Load) -> Trial:
        """The same for the seam; counts that contradict each other are refused."""
        if self.received > self.offered or self.lost != self.offered - self.received:
            raise GeneratorError(
                f"quiver-tg contradicts itself: offered {self.offered}, received {self.received}, "
                f"lost {self.lost}; received plus lost must be offered"
            )
        return Trial(
            load=load,
            duration_s=self.duration_s,
            intended=self.intended,
            offered=self.offered,
            received=self.received,
            lost=self.lost,
            reordered=self.reordered,
            duplicated=self.duplicated,
            limited_by_generator=self.limited_by_generator,
            limit=self.limit,
            latency=self.latency_ns.latency() if self.latency_ns else None,
            directions=tuple(DirectionCounts(**one.model_dump()) for one in self.per_direction),
        )


class QuiverTg:
    """A running quiver-tg; a measurer. Use it as a context manager."""

    def __init__(
        self, profile: Profile, directory: Path, warmup_s: float = 0.05, binary: Path | None = None
    ) -> None:
        self._profile = profile
        self._directory = directory
        self._warmup_s = warmup_s
        self._binary = binary
        self._log = directory / "quiver-tg.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._pending = b""
        self.version = ""

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start the process and wait until every link is up."""
        path = self._directory / "profile.yaml"
        self._profile.write(path)
        binary = self._binary or find_binary("quiver-tg")
        with self._log.open("wb") as log:
            command: list[str | Path] = [binary, "serve", "--profile", path]
            self._process = start(command, subprocess.PIPE, subprocess.PIPE, log)
        try:
            ready = self._read(self._profile.link_timeout_s + REPLY_GRACE_S)
            if "ready" not in ready:
                raise GeneratorError(f"quiver-tg began with {ready!r} instead of ready")
        except BaseException:
            self.stop()
            raise
        self.version = str(ready["ready"].get("version", ""))

    def measure(self, duration_s: float, load: Load) -> Trial:
        """One trial, after a warm-up that is not counted."""
        request = {
            "measure": {
                "rate_pps": load,
                "duration_s": duration_s,
                "warmup_s": self._warmup_s,
                "drain_s": 0.02,
            }
        }
        reply = self._ask(request, duration_s + self._warmup_s + REPLY_GRACE_S)
        try:
            return MeasureReply.model_validate(reply).trial(load)
        except ValidationError as error:
            raise GeneratorError(f"quiver-tg's reply cannot be understood: {error}") from error

    def pause(self) -> None:
        """Let it stand still."""
        if self._process is not None:
            pause(self._process)

    def resume(self) -> None:
        """Let it go on."""
        if self._process is not None:
            resume(self._process)

    def stop(self) -> None:
        """End the process, politely if it still listens."""
        process, self._process = self._process, None
        if process is None:
            return
        resume(process)
        try:
            if process.poll() is None and process.stdin:
                process.stdin.write(b'{"stop": true}\n')
                process.stdin.close()
                process.wait(2.0)
        except (OSError, subprocess.TimeoutExpired):
            pass
        stop(process)
        if process.stdout:
            process.stdout.close()

    def _ask(self, request: dict[str, Any], timeout_s: float) -> dict[str, Any]:
        if self._process is None or self._process.stdin is None:
            raise GeneratorError("quiver-tg is not running")
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
        except OSError as error:
            raise self._died() from error
        return self._read(timeout_s)

    def _read(self, timeout_s: float) -> dict[str, Any]:
        """The next reply line, or an error."""
        assert self._process is not None
        assert self._process.stdout is not None
        line = self._read_line(self._process.stdout, time.monotonic() + timeout_s)
        try:
            reply = json.loads(line)
        except ValueError as error:
            raise GeneratorError(f"quiver-tg wrote what is not JSON: {line[:200]!r}") from error
        if not isinstance(reply, dict):
            raise GeneratorError(f"quiver-tg wrote {line[:200]!r} instead of an object")
        if "error" in reply:
            raise GeneratorError(f"quiver-tg: {reply['error']}")
        return reply

    def _read_line(self, stream: IO[bytes], deadline: float) -> bytes:
        while b"\n" not in self._pending:
            left = deadline - time.monotonic()
            if left <= 0 or len(self._pending) > REPLY_BYTES_MAX:
                raise GeneratorError(f"quiver-tg did not answer in time; its log:\n{last_words(self._log)}")
            if select.select([stream], [], [], left)[0]:
                chunk = os.read(stream.fileno(), 65_536)
                if not chunk:
                    raise self._died()
                self._pending += chunk
        line, _, self._pending = self._pending.partition(b"\n")
        return line

    def _died(self) -> ProcessError:
        code = stop(self._process) if self._process else None
        return ProcessError(f"quiver-tg ended (exit code {code}); its log:\n{last_words(self._log)}")
