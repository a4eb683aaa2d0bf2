"""Plans for a forwarder on another machine: the same commands, with that machine's interfaces and files."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

from conftest import scenario
from quiver_lab.experiments.experiment import parse_experiment
from quiver_lab.experiments.peer_settings import Host
from quiver_lab.experiments.yaml_reading import YamlError
from quiver_lab.forwarders.linux_wires import LinuxWires
from quiver_lab.machines.guardian import SCRIPT
from quiver_lab.machines.here import LocalMachine
from quiver_lab.testbed.cores import Cores
from quiver_lab.testbed.remote_benches import make_remote_bench, remote_cores

HERE = Cores(main=0, workers=(1,), generator=0)
HOST = {"address": "far.example", "wires": {"a0": "eth1", "a1": "eth2"}, "programs": "/opt/bin"}


class Far(LocalMachine):
    """Another machine, as far as a plan sees it: nothing is changed."""

    def run(self, command: object, **_: object) -> str:
        words = [str(word) for word in command]  # type: ignore[attr-defined]
        if words[0] == "nproc":
            return "8\n"
        return "0x1003\n" if words[0] == "cat" else ""


def test_quivers_commands_name_that_machines_interfaces_and_files(tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    table = {"kind": "internet", "count": 1_000, "next_hops": 2}
    asked = scenario(forwarder={"kind": "quiver", "workers": 2, "host": HOST}, table=table)
    assert asked.host is not None
    far = Far(tmp_path / "far")
    bench = make_remote_bench(asked, asked.host, far, tmp_path, HERE)
    assert bench.commands[:2] == (
        "create host-interface name eth1", "set interface mac address host-eth1 02:fe:00:00:00:01",
    )  # fmt: skip
    assert not any("memif" in line for line in bench.commands)
    assert bench.commands[-1] == f"exec {tmp_path}/far/routes.cli"
    routes = (tmp_path / "far" / "routes.cli").read_text()
    assert "host-eth2" in routes
    assert "memif" not in routes
    ports = [port.af_packet.interface for port in bench.profile.ports if port.af_packet]
    assert ports == ["a0", "a1"]
    assert str(asked.name).startswith("64b-2t2c-wire-ethip4-")


@pytest.mark.parametrize("kind", ["linux", "testpmd", "open-vswitch", "vpp"])
def test_every_forwarder_has_a_plan_for_another_machine(tmp_path: Path, kind: str) -> None:
    path, table = ("ip4", {"kind": "consecutive"}) if kind == "linux" else ("l2xc", {"kind": "none"})
    asked = scenario(forwarder={"kind": kind, "host": HOST}, path=path, table=table)
    assert asked.host is not None
    bench = make_remote_bench(asked, asked.host, Far(tmp_path), tmp_path, HERE)
    assert all(port.memif is None for port in bench.profile.ports)
    assert isinstance(bench.forwarder, LinuxWires) is (kind == "linux")


def test_workers_there_have_the_last_cpus_or_those_that_are_named(tmp_path: Path) -> None:
    host, far = Host.model_validate(HOST), Far(tmp_path)
    assert remote_cores(host, far, 2, HERE).workers == (6, 7)
    named = Host.model_validate(HOST | {"cores": [3]})
    assert remote_cores(named, far, 1, HERE).workers == (3,)
    with pytest.raises(ValueError, match="need as many CPUs"):
        remote_cores(named, far, 2, HERE)
    with pytest.raises(ValueError, match="has 8 CPUs"):
        remote_cores(host, far, 8, HERE)


@pytest.mark.parametrize(
    ("host", "problem"),
    [
        ("{address: far}", ":3: forwarder.host.wires: is missing"),
        ("{address: far, wires: {a: b}}", ":3: forwarder.host.wires: dictionary should have at least 2"),
        ("{address: far, wires: {a: b, c: a/b}}", "'a/b' is no interface's name"),
        ("{address: far, wirse: {a: b}}", "did you mean wires?"),
    ],
)
def test_a_host_that_cannot_be_is_refused_with_its_line(host: str, problem: str) -> None:
    text = (
        f"question: Is it refused?\ntitle: far\nforwarder: {{kind: linux, host: {host}}}\nscenario: ip4base\n"
    )
    with pytest.raises(YamlError) as refused:
        parse_experiment(text, "a.yaml")
    assert problem in str(refused.value)


@pytest.mark.parametrize("ending", ["closed", "silent"])
def test_the_guardian_gives_everything_back_when_it_hears_no_more(tmp_path: Path, ending: str) -> None:
    folder = tmp_path / "session"
    folder.mkdir()
    # it does not hear SIGTERM: the guardian insists
    left = subprocess.Popen(["sh", "-c", "trap '' TERM; while :; do sleep 1; done"])
    (folder / "left.pid").write_text(f"{left.pid}\n")
    order = tmp_path / "order"
    (folder / "undo").write_text(f"echo first made >> {order}\nfalse\necho last made >> {order}\n")
    command = ["sh", "-c", SCRIPT, "guardian", str(folder), "2", "1"]
    guardian = subprocess.Popen(command, stdin=subprocess.PIPE)
    assert guardian.stdin is not None
    for _ in range(3):
        guardian.stdin.write(b"beat\n")
        guardian.stdin.flush()
        time.sleep(1.0)
    assert guardian.poll() is None
    assert left.poll() is None
    if ending == "closed":
        guardian.stdin.close()
    guardian.wait(30)
    assert left.wait(20) == -9
    assert order.read_text() == "last made\nfirst made\n"
    assert not folder.exists()
    guardian.stdin.close()
