"""A generator under control: one that is started here, or one that runs elsewhere on this machine."""

from __future__ import annotations

import contextlib
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from pydantic import TypeAdapter, ValidationError

from quiver_lab.generators.answers import GeneratorError, Result, Statistics
from quiver_lab.generators.profile import Profile, Stream
from quiver_lab.generators.transactions import TransactionsNow, TransactionsResult
from quiver_lab.host.json_rpc import (
    JsonRpc,
    PipeChannel,
    RpcClosedError,
    RpcError,
    RpcTimeoutError,
    SocketChannel,
)
from quiver_lab.host.processes import ProcessError, find_binary, last_words, pause, resume, start, stop
from quiver_lab.trials.measurement import Load

T = TypeVar("T")

GRACE_S = 15.0
"""How much longer than what was asked for an answer may take."""
LOAD_GRACE_S = 60.0
"""How much longer than its links a profile may take to be loaded: it may name millions of addresses."""
DURATION_MAX_S = 86_400.0
Rate = Load | str
"""All streams together: frames a second as a number, or as people write it: `1.5Mpps`, `10Gbps` on a wire,
`10GbpsL2` with FCS, `40%` of the ports' `line_rate`, `max`."""


class Generator:
    """quiver-tg with a profile. Use it as a context manager:

    ```python
    with Generator(profile) as tg:
        tg.start(rate="1Mpps")
        print(tg.statistics())
        result = tg.stop()
    ```

    Without `at` a process is started, and ends with the context. `at` names the socket (a path, or
    HOST:PORT) of one that runs already; it goes on running afterwards.
    """

    def __init__(
        self,
        profile: Profile | Path | None = None,
        *,
        at: Path | str | None = None,
        directory: Path | None = None,
        binary: Path | None = None,
    ) -> None:
        self._profile = profile
        self._at = at
        self._binary = binary
        self._made_directory = None if directory else tempfile.TemporaryDirectory(prefix="quiver-tg-")
        self._directory = directory or Path(str(self._made_directory and self._made_directory.name))
        self._log = self._directory / "quiver-tg.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._rpc: JsonRpc | None = None
        self.version = ""

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def open(self) -> None:
        """Start or reach it, and wait until every link of the profile is up."""
        try:
            if self._at is not None:
                self._connect(self._at)
                if self._profile is not None:
                    self.load(self._profile)
            else:
                self._start()
        except BaseException:
            self.close()
            raise

    def _connect(self, place: Path | str) -> None:
        try:
            self._rpc = JsonRpc(SocketChannel(place))
        except OSError as error:
            raise GeneratorError(
                f"no generator answers at {place} ({error.strerror}); `quiver-tg serve` starts one"
            ) from error

    def _start(self) -> None:
        command: list[str | Path] = [self._binary or find_binary("quiver-tg"), "serve", "--stdio"]
        patience_s = GRACE_S
        if self._profile is not None:
            command.append(self._file_of(self._profile))
            links_s = self._profile.link_timeout_s if isinstance(self._profile, Profile) else 0.0
            patience_s = links_s + LOAD_GRACE_S
        with self._log.open("wb") as log:
            self._process = start(command, subprocess.PIPE, subprocess.PIPE, log)
        self._rpc = JsonRpc(PipeChannel(self._process, "quiver-tg"))
        ready = self._translate(lambda rpc: rpc.notified(patience_s))
        if ready.get("method") != "ready":
            raise GeneratorError(f"quiver-tg began with {ready!r} instead of ready")
        self.version = str(ready["params"].get("version", ""))

    def _file_of(self, profile: Profile | Path) -> Path:
        if isinstance(profile, Path):
            return profile.absolute()
        path = self._directory / "profile.yaml"
        profile.write(path)
        return path

    def close(self) -> None:
        """Leave it; a process that was started here ends, politely if it still listens."""
        rpc, self._rpc = self._rpc, None
        process, self._process = self._process, None
        if process is not None:
            resume(process)
        if rpc is not None:
            rpc.close()
        if process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(2.0)
            stop(process)
        if self._made_directory is not None:
            self._made_directory.cleanup()
            self._made_directory = None

    def load(self, profile: Profile | Path) -> None:
        """Replace the profile, and wait until every link is up; ports that are the same stay as they are."""
        links_s = profile.link_timeout_s if isinstance(profile, Profile) else 3600.0
        self.command("load", links_s + LOAD_GRACE_S, file=str(self._file_of(profile)))
        self._profile = profile

    def add_stream(self, stream: Stream) -> None:
        """One more stream behind the others; between measurements, and the ports stay."""
        self.command("stream add", LOAD_GRACE_S, stream=_text(stream))

    def replace_stream(self, number: int, stream: Stream) -> None:
        """Another stream in the place of one."""
        self.command("stream replace", LOAD_GRACE_S, number=number, stream=_text(stream))

    def delete_stream(self, number: int) -> None:
        """One stream less; those behind it move up."""
        self.command("stream delete", LOAD_GRACE_S, number=number)

    def start(
        self,
        rate: Rate = "max",
        duration_s: float | None = None,
        *,
        warmup_s: float | None = None,
        drain_s: float | None = None,
        make_up: bool = True,
        histograms: bool = False,
    ) -> int:
        """Begin to send, until `stop` when there is no duration; the measurement's number."""
        answer = self.command(
            "start",
            **_times(
                rate=rate,
                duration_s=duration_s,
                warmup_s=warmup_s,
                drain_s=drain_s,
                make_up=make_up,
                histograms=histograms,
            ),
        )
        return int(answer["measurement"])

    def measure(
        self,
        rate: Rate = "max",
        duration_s: float = 10.0,
        *,
        warmup_s: float | None = None,
        drain_s: float | None = None,
        make_up: bool = True,
        histograms: bool = False,
    ) -> Result:
        """Send for so long, and the result."""
        patience_s = duration_s + (warmup_s or 0.0) + 11 * (drain_s or 0.0) + GRACE_S
        return self._result(
            self.command(
                "measure",
                patience_s,
                **_times(
                    rate=rate,
                    duration_s=duration_s,
                    warmup_s=warmup_s,
                    drain_s=drain_s,
                    make_up=make_up,
                    histograms=histograms,
                ),
            )
        )

    def transact(
        self, rate_cps: Rate = "max", duration_s: float = 10.0, *, histograms: bool = False
    ) -> TransactionsResult:
        """Begin transactions for so long (or the profile's `limit`), wait for their ends; the result.

        The profile has `stateful`. "max" is the profile's `rate_cps`, or as fast as they fit.
        """
        self.start(rate_cps, duration_s, histograms=histograms)
        return self.transactions_result()

    def stop_transactions(self) -> TransactionsResult:
        """Begin no more transactions, wait for the ends of those that are open; the result."""
        return _read(TypeAdapter(TransactionsResult), self.command("stop", DURATION_MAX_S))

    def transactions_result(self) -> TransactionsResult:
        """The result of the transactions that were begun last; their end is waited for."""
        return _read(TypeAdapter(TransactionsResult), self.command("wait", DURATION_MAX_S))

    def transactions(self) -> TransactionsNow:
        """What clients and servers do now."""
        return _read(TypeAdapter(TransactionsNow), self.command("show statistics")["transactions"])

    def stop(self) -> Result:
        """End the sending, wait for late frames; the result."""
        return self._result(self.command("stop", DURATION_MAX_S))

    def result(self) -> Result:
        """The result of the measurement that was begun last; its end is waited for."""
        return self._result(self.command("wait", DURATION_MAX_S))

    def results(self) -> tuple[Result, ...]:
        """The results that it remembers, the newest last."""
        return _read(TypeAdapter(tuple[Result, ...]), self.command("show results"))

    def set_rate(self, rate: Rate, stream: int | None = None) -> None:
        """Change how fast all streams together are, or one, from now on and without a gap."""
        self.command("rate", rate=rate, stream=stream)

    def pause(self, stream: int | None = None) -> None:
        """Send nothing of one stream, or of all, until `resume`; the time goes on."""
        self.command("pause", stream=stream)

    def resume(self, stream: int | None = None) -> None:
        """Go on."""
        self.command("resume", stream=stream)

    def statistics(self) -> Statistics:
        """What it does now, by stream and by port."""
        return _read(TypeAdapter(Statistics), self.command("show statistics"))

    def command(self, name: str, timeout_s: float = GRACE_S, /, **arguments: Any) -> Any:
        """Any of its commands (`quiver-tg ctl help` lists them); the JSON of its answer."""
        return self._translate(lambda rpc: rpc.command(name, timeout_s, **arguments))

    def stand_still(self) -> None:
        """Let the process that was started here have no time, so that another may have its core."""
        if self._process is not None:
            pause(self._process)

    def go_on(self) -> None:
        """Let it have time again."""
        if self._process is not None:
            resume(self._process)

    def _result(self, answer: Any) -> Result:
        return _read(TypeAdapter(Result), answer)

    def _translate(self, call: Any) -> Any:
        if self._rpc is None:
            raise GeneratorError("quiver-tg is not running")
        try:
            return call(self._rpc)
        except RpcClosedError as error:
            raise self._died(error) from error
        except RpcTimeoutError as error:
            raise GeneratorError(
                f"quiver-tg did not answer in time; its log:\n{last_words(self._log)}"
            ) from error
        except RpcError as error:
            what = error.refusal.get("message") or error
            raise GeneratorError(f"quiver-tg: {what}") from error

    def _died(self, error: RpcError) -> Exception:
        if self._process is None:
            return GeneratorError(f"the generator is gone: {error}")
        code = stop(self._process)
        return ProcessError(f"quiver-tg ended (exit code {code}); its log:\n{last_words(self._log)}")


def _times(
    *,
    rate: Rate,
    duration_s: float | None,
    warmup_s: float | None,
    drain_s: float | None,
    make_up: bool,
    histograms: bool,
) -> dict[str, Any]:
    return {
        "rate": rate,
        "duration": duration_s,
        "warmup": warmup_s,
        "drain": drain_s,
        "no_make_up": None if make_up else True,
        "histograms": True if histograms else None,
    }


def _read(adapter: TypeAdapter[T], answer: Any) -> T:
    try:
        return adapter.validate_python(answer)
    except ValidationError as error:
        raise GeneratorError(f"quiver-tg's reply cannot be understood: {error}") from error


def _text(stream: Stream) -> str:
    return stream.model_dump_json(by_alias=True, exclude_none=True)
