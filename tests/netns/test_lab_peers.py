"""The lab's peers: testpmd and Open vSwitch really forward what quiver-tg sends; when they misbehave, what
was finished is kept, the run goes on where it stopped, and nothing of them stays."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from quiver_lab.experiments.experiment import Planned, parse_experiment
from quiver_lab.forwarders import testpmd
from quiver_lab.forwarders.open_vswitch import SWITCH_PLACES
from quiver_lab.host.huge_pages import PAGES, Pool
from quiver_lab.results.model import Results, TrialRecord
from quiver_lab.runs.campaign import run_experiment
from quiver_lab.runs.journal import Journal
from quiver_lab.runs.running import run_cell
from rich.console import Console

#: Measures, and looks at all of the machine: no other test runs beside these.
pytestmark = [
    pytest.mark.alone,
    pytest.mark.skipif(shutil.which(testpmd.PROGRAM) is None, reason="dpdk-testpmd is not installed"),
    pytest.mark.skipif(os.geteuid() != 0, reason="huge pages and namespaces need root"),
    pytest.mark.skipif(
        Pool().count("free_hugepages") < PAGES,
        reason=f"Open vSwitch needs {PAGES} free huge pages of 2 MiB (sysctl vm.nr_hugepages={PAGES})",
    ),
]
SEARCH = """\
search:
  mrr: {trials: 2, duration_s: 0.2}
  ndrpdr: null
  telemetry: {duration_s: 0.2}
  latency: null
link: {ring_size: 1024}
"""
HEAD = "question: Does it forward?\ntitle: peers\nframe: min\n"
GONE_S = 20.0


def processes_of(folder: Path) -> list[str]:
    """Command lines that name a folder."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                if str(folder) in line:
                    found.append(line)
    return found


def pid_of(words: str, folder: Path) -> int:
    """The process whose command line has both."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                if line.startswith(words) and str(folder) in line:
                    return int(entry.name)
    raise AssertionError(f"no process {words} of {folder}")


def nothing_stays(folder: Path) -> None:
    deadline = time.monotonic() + GONE_S
    while processes_of(folder) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert processes_of(folder) == []


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where sessions have their folders."""
    folder = tmp_path / "w"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


@pytest.mark.skipif(not any(place.exists() for place in SWITCH_PLACES), reason="Open vSwitch has no DPDK")
def test_every_peer_forwards_every_path_that_it_can(work: Path, tmp_path: Path) -> None:
    text = HEAD + (
        "matrix:\n  forwarder:\n    io: testpmd\n    mac: {kind: testpmd, mode: mac}\n"
        "    macswap: {kind: testpmd, mode: macswap}\n    ovs: open-vswitch\n"
        "  scenario: [l2xcbase, l2bdbasemaclrn, ip4base, ip6base]\nleave_out:\n"
    )
    for mode in ("io", "mac", "macswap"):
        for scenario in ("l2bdbasemaclrn", "ip4base", "ip6base"):
            text += f"  - {{forwarder: {mode}, scenario: {scenario}}}\n"
    results = run_experiment(parse_experiment(text + SEARCH, "p.yaml"), tmp_path / "out", Console(quiet=True))
    assert len(results.scenarios) == 7
    for run in results.scenarios:
        assert run.status == "ok", f"{run.title}: {run.error}"
        assert run.mrr is not None
        assert run.mrr.mean_pps > 1_000
        assert run.forwarder_version
        assert run.telemetry is not None
        assert sum(node.vectors for node in run.telemetry.nodes) > 100
        assert len(run.telemetry.cpus) == os.cpu_count()
        told = "show port stats all" if run.forwarder == "testpmd" else "dpif-netdev/pmd-stats-show"
        assert "packets" in run.telemetry.counters[told]
    nothing_stays(work)
    assert list(work.iterdir()) == []


def test_frames_at_the_wrong_port_are_told(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    straight = testpmd.command_line
    monkeypatch.setattr(
        testpmd, "command_line", lambda config, prefix: [*straight(config, prefix), "--port-topology=loop"]
    )
    cell = parse_experiment(HEAD + "forwarder: testpmd\nscenario: l2xcbase\n" + SEARCH, "p.yaml").cells[0]
    run = run_cell(Planned(cell, 1), Quiet())
    assert run.status == "failed"
    assert run.error is not None
    assert "came back at the wrong port" in run.error
    nothing_stays(work)


class Quiet:
    """Watches nothing."""

    def phase(self, name: str) -> None:
        """Nothing."""

    def trial(self, record: TrialRecord) -> None:
        """Nothing."""


def test_a_forwarder_that_cannot_start_says_why(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(testpmd, "MEMORY_MIB", 1 << 24)
    cell = parse_experiment(HEAD + "forwarder: testpmd\nscenario: l2xcbase\n" + SEARCH, "p.yaml").cells[0]
    run = run_cell(Planned(cell, 1), Quiet())
    assert run.status == "failed"
    assert run.error is not None
    assert run.error.startswith("testpmd ended (exit code ")
    assert "EAL" in run.error
    nothing_stays(work)


@pytest.mark.parametrize(
    ("forwarder", "words"), [("testpmd", "dpdk-testpmd "), ("open-vswitch", str(SWITCH_PLACES[0]))]
)
def test_one_that_dies_in_a_trial_keeps_what_was_finished_and_the_run_goes_on(
    work: Path, tmp_path: Path, forwarder: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = HEAD + f"forwarder: {forwarder}\nscenario: l2xcbase\n" + SEARCH.replace("trials: 2", "trials: 8")
    experiment, out = parse_experiment(text, "p.yaml"), tmp_path / "out"
    killed: list[int] = []

    def kill() -> None:
        killed.append(pid_of(words, work))
        os.kill(killed[0], signal.SIGKILL)

    class KillsInTheThird:
        """A journal that has the forwarder killed while the third trial runs."""

        seen = 0

        def trial(self, record: TrialRecord) -> None:
            self.seen += 1
            if self.seen == 2:
                threading.Timer(0.1, kill).start()

    watcher, kept = KillsInTheThird(), Journal.trial

    def trial(journal: Journal, record: TrialRecord) -> None:
        kept(journal, record)
        watcher.trial(record)

    with monkeypatch.context() as patched:
        patched.setattr(Journal, "trial", trial)
        results = run_experiment(experiment, out, Console(quiet=True))
    assert killed
    run = results.scenarios[0]
    assert run.status == "failed"
    assert run.error is not None
    assert "a trial was cut off" in run.error
    assert 2 <= len(run.trials) < 8
    assert not results.complete
    nothing_stays(work)
    again = run_experiment(experiment, out, Console(quiet=True), resume=True)
    assert again.complete, again.scenarios[0].error
    assert again.scenarios[0].resumed_trials == len(run.trials)
    nothing_stays(work)
    assert list(work.iterdir()) == []


@pytest.mark.parametrize("forwarder", ["testpmd", "open-vswitch"])
@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_lab_gives_everything_back(
    work: Path, tmp_path: Path, forwarder: str, ending: signal.Signals
) -> None:
    path = tmp_path / "p.yaml"
    text = HEAD + f"forwarder: {forwarder}\nscenario: l2xcbase\n" + SEARCH.replace("trials: 2", "trials: 99")
    path.write_text(text)
    out = tmp_path / "out"
    command = [sys.executable, "-m", "quiver_lab", "run", str(path), "--out", str(out)]
    store = {"TMPDIR": str(work), "QUIVER_LAB_STORE": str(tmp_path / "store")}
    lab = subprocess.Popen(command, env={**os.environ, **store}, stdout=subprocess.DEVNULL)
    journal = out / "journal.jsonl"
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and lab.poll() is None:
        if journal.exists() and journal.read_text().count('"event": "trial"') >= 2:
            break
        time.sleep(0.05)
    lab.send_signal(ending)
    code = lab.wait(60)
    nothing_stays(work)
    if ending == signal.SIGINT:
        assert code == 130
        assert list(work.iterdir()) == []
        results = Results.read(out / "results.json")
        assert results.scenarios[0].status == "interrupted"
        assert len(results.scenarios[0].trials) >= 2
