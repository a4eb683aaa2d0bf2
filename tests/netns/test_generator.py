"""quiver-tg before real peers: it answers and asks on its links, is controlled while it sends, and counts
what the router and Linux count."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from quiver_lab.generators.answers import GeneratorError, Result
from quiver_lab.generators.client import Generator

from peers.namespace import Namespace, veth
from peers.network import answers, namespaces, ping
from peers.open_vswitch import open_vswitch
from peers.processes import Process, parse_json, run, wait_until
from peers.router import Router, binary
from peers.terminal import Terminal

#: Slow enough that a ring of 1,024 frames bridges half a second of a busy machine.
RATE = 2000
#: Measurements until one has lost nothing.
ATTEMPTS = 10

ROUTER_SETUP = """create interface memif id 0 master
    create interface memif id 1 master
    set interface ip address memif0/0 198.18.0.1/24
    set interface ip address memif0/1 198.18.1.1/24
    set interface state memif0/0 up
    set interface state memif0/1 up"""


@pytest.fixture(scope="module")
def router() -> Iterator[Router]:
    """A router with two memifs."""
    with Router() as made:
        made.configure(ROUTER_SETUP)
        yield made


@pytest.fixture
def five_lines(router: Router, tmp_path: Path) -> Path:
    """The guide's profile."""
    path = tmp_path / "profile.yaml"
    path.write_text(
        f"""ports:
  - {{memif: {{socket: {router.folder}/memif.sock, id: 0}}, ip4: [198.18.0.2], gateway: 198.18.0.1}}
  - {{memif: {{socket: {router.folder}/memif.sock, id: 1}}, ip4: [198.18.1.2], gateway: 198.18.1.1}}
streams:
  - {{from: 0, to: 1}}
"""
    )
    return path


@contextmanager
def serving(profile: Path | None, place: Path, namespace: Namespace | None = None) -> Iterator[Process]:
    """A generator that listens at `place`."""
    words = [str(binary("quiver-tg")), "serve", "--socket", str(place), "--core", "0"]
    words += [str(profile)] if profile else []
    process = Process(namespace.words(*words) if namespace else words)

    def listens() -> bool:
        assert process.is_alive, process.text()
        with closing(socket.socket(socket.AF_UNIX)) as probe:
            return probe.connect_ex(str(place)) == 0

    try:
        wait_until("the generator listens", listens, 60.0)
        yield process
    finally:
        process.stop(signal.SIGTERM)
        process.forget()


def tg(*words: str, check: bool = True) -> Any:
    """The generator's command line."""
    return run(str(binary("quiver-tg")), *words, check=check)


def lossless(generator: Generator, rate: int = RATE, **more: Any) -> Result:
    """The first of some measurements in which nothing was lost."""
    for _ in range(ATTEMPTS):
        result = generator.measure(rate, 1.0, warmup_s=0.0, drain_s=0.5, **more)
        if result.lost == 0:
            return result
    raise AssertionError(f"each of {ATTEMPTS} measurements lost frames; the last: {result}")


def ip4_received(router: Router, interface: str) -> int:
    """IPv4 packets that an interface has received."""
    return int(router.counters(interface)["ip4"])


def test_five_lines_load_the_router_and_both_count_the_same(
    router: Router, five_lines: Path, tmp_path: Path
) -> None:
    place = tmp_path / "tg.sock"
    with serving(five_lines, place), Generator(at=place) as generator:
        before = 0
        for _ in range(ATTEMPTS):
            before = ip4_received(router, "memif0/0")
            result = generator.measure(RATE, 1.0, warmup_s=0.0, drain_s=0.5)
            taken = ip4_received(router, "memif0/0") - before
            assert taken == result.offered, result
            assert result.intended == result.offered + sum(result.not_sent.model_dump().values()), result
            if result.lost == 0:
                break
        assert result.lost == 0, result
        assert result.received == taken
        # The same JSON by every way.
        kept = parse_json(tg("ctl", "--socket", str(place), "show results 1 json").stdout)[0]
        assert Result.model_validate(kept) == result == generator.results()[-1] == generator.result()


def test_it_shares_the_routers_runtime_folder(
    router: Router, five_lines: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QUIVER_RUNTIME_DIR", str(router.folder))
    words = ["run", str(five_lines), "--rate", str(RATE), "--duration", "500ms", "--core", "0", "--json"]
    told = parse_json(tg(*words).stdout)
    assert told["received"] > 0
    assert told["offered"] == told["received"] + told["lost"]


def test_it_is_watched_and_changed_while_it_sends(router: Router, five_lines: Path, tmp_path: Path) -> None:
    place = tmp_path / "tg.sock"
    with serving(five_lines, place), Generator(at=place) as generator:
        assert generator.start(rate=RATE) == 1
        with pytest.raises(GeneratorError, match="measurement 1 is under way"):
            generator.start()
        with pytest.raises(GeneratorError, match="measurement 1 is under way"):
            generator.load(five_lines)
        with closing(Terminal([str(binary("quiver-tg")), "top", "--socket", str(place)])) as terminal:
            terminal.wait_for(r"^measurement 1 sending")
            terminal.wait_for(r"^0 +0 -> 1 +2\.0k +[\d.]+k? +[\d.]+k?")
            generator.set_rate("1kpps")
            terminal.wait_for(r"^0 +0 -> 1 +1\.0k +")
            terminal.press("2")
            terminal.wait_for(r"^memif\S+ +up ")
            generator.pause()
            terminal.wait_for(r"^measurement 1 paused")
            terminal.press("q")
            assert terminal.process.wait(20) == 0
            assert terminal.modes() == terminal.modes_before
        sent = generator.statistics().streams[0].sent
        generator.resume()
        wait_until("it sends again", lambda: generator.statistics().streams[0].sent > sent)
        once = tg("top", "--socket", str(place), "--once").stdout
        assert re.search(r"^0 +0 -> 1", once, re.MULTILINE), once
        picture = parse_json(tg("top", "--socket", str(place), "--json").stdout)
        assert picture["measurement"] == 1
        assert picture["ports"][0]["link"] == "up"
        result = generator.stop()
        assert result.offered == result.received + result.lost
        # It had no duration: what is told is about the time until the stop.
        assert result.duration_s < 3600
        assert generator.statistics().state == "idle"


def test_a_client_that_vanishes_stops_its_measurement_and_others_go_on(
    router: Router, five_lines: Path, tmp_path: Path
) -> None:
    place = tmp_path / "tg.sock"
    with serving(five_lines, place), Generator(at=place) as generator:
        asking = Process([str(binary("quiver-tg")), "ctl", "--socket", str(place), "measure duration 1000"])
        wait_until("it sends", lambda: generator.statistics().state == "sending")
        os.kill(asking.pid, signal.SIGKILL)
        asking.forget()
        wait_until("it stops", lambda: generator.statistics().state == "idle")
        assert generator.measure(RATE, 0.2).measurement == 2


def test_a_socket_left_behind_by_a_crash_is_taken_and_one_in_use_is_not(tmp_path: Path) -> None:
    place = tmp_path / "tg.sock"
    with closing(socket.socket(socket.AF_UNIX)) as crashed:
        crashed.bind(str(place))
    with serving(None, place) as first:
        done = tg("serve", "--socket", str(place), check=False)
        assert done.returncode == 1
        assert "another process answers" in done.stderr
        done = tg("ctl", "--socket", str(place), "start", check=False)
        assert "no profile is loaded: `load FILE` loads one" in done.stderr
        assert first.is_alive


def test_what_is_wrong_with_a_profile_is_said_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "wrong.yaml"
    path.write_text("ports:\n  - {tap: {name: t0}}\nstreams:\n  - {from: 0, to: 3}\n")
    for words in (["run", str(path)], ["serve", str(path)]):
        done = tg(*words, check=False)
        assert done.returncode == 1
        assert f"{path}:4: " in done.stderr
        assert "there are ports 0 to 0" in done.stderr
    path.write_text("ports:\n  - {af_packet: {interface: nowhere0}}\nstreams:\n  - {from: 0, to: 0, layers: "
                    '{ethernet: {dst: "02:00:00:00:00:01"}}}\n')  # fmt: skip
    done = tg("run", str(path), check=False)
    assert done.returncode == 1
    assert "nowhere0" in done.stderr


@contextmanager
def linux_router() -> Iterator[tuple[Namespace, Namespace]]:
    """The generator's namespace, with port0 and port1, and a Linux router that they lead to."""
    with namespaces("generator", "linux") as (own, linux):
        for number in (0, 1):
            veth(own, f"port{number}", linux, f"to{number}", 1500)
            own.sysctl(f"net.ipv6.conf.port{number}.disable_ipv6", 1)
            linux.ip("addr", "add", f"198.18.{number}.1/24", "dev", f"to{number}")
            linux.ip("addr", "add", f"2001:2:0:{number}::1/64", "dev", f"to{number}", "nodad")
        linux.sysctl("net.ipv4.ip_forward", 1)
        linux.sysctl("net.ipv6.conf.all.forwarding", 1)
        yield own, linux


def af_packet_profile(family: int) -> dict[str, Any]:
    """Both ports before the Linux router."""

    def port(number: int) -> dict[str, Any]:
        addresses = (
            {"ip4": [f"198.18.{number}.2", f"198.18.{number}.64/26"], "gateway": f"198.18.{number}.1"}
            if family == 4
            else {"ip6": [f"2001:2:0:{number}::2", f"2001:2:0:{number}:5::/80"],
                  "gateway": f"2001:2:0:{number}::1"}
        )  # fmt: skip
        return {"af_packet": {"interface": f"port{number}"}, **addresses}

    return {
        "ports": [port(0), port(1)],
        "streams": [{"from": 0, "to": 1, "frame": 100}, {"from": 1, "to": 0, "frame": 100}],
    }


def forwarded(linux: Namespace, family: int) -> int:
    """Packets that Linux has forwarded."""
    if family == 6:
        text = linux.run("cat", "/proc/net/snmp6").stdout
        return int(
            next(line.split()[1] for line in text.splitlines() if line.startswith("Ip6OutForwDatagrams"))
        )
    names, values = (
        line.split()
        for line in linux.run("cat", "/proc/net/snmp").stdout.splitlines()
        if line.startswith("Ip:")
    )
    return int(dict(zip(names, values, strict=True))["ForwDatagrams"])


@pytest.mark.parametrize("family", [4, 6], ids=["IPv4", "IPv6"])
def test_linux_is_found_by_asking_is_answered_and_forwards_what_is_counted(
    family: int, tmp_path: Path
) -> None:
    with linux_router() as (own, linux):
        path = tmp_path / "profile.yaml"
        path.write_text(json.dumps(af_packet_profile(family)))
        place = tmp_path / "tg.sock"
        with serving(path, place, own), Generator(at=place) as generator:
            played = (
                ["198.18.0.2", "198.18.0.65", "198.18.1.126"]
                if family == 4
                else ["2001:2:0:0::2", "2001:2:0:1:5::77"]
            )
            for address in played:
                wait_until(f"{address} answers", lambda: answers(ping(linux, address, count=1)) == 1)  # noqa: B023
            size = ping(linux, played[0], "-s", "1400")
            assert answers(size) == 3, size
            assert answers(ping(linux, "198.18.0.5" if family == 4 else "2001:2::5", "-W", "1", count=1)) == 0
            for _ in range(ATTEMPTS):
                before = forwarded(linux, family)
                result = generator.measure(RATE, 1.0, warmup_s=0.0, drain_s=0.5)
                passed = forwarded(linux, family) - before
                assert result.received <= passed <= result.offered, (passed, result)
                if result.lost == 0:
                    break
            assert result.lost == 0, result


def test_a_gateway_that_is_not_there_is_named(tmp_path: Path) -> None:
    with linux_router() as (own, _):
        made = af_packet_profile(4)
        made["ports"][1]["gateway"] = "198.18.1.9"
        made["link_timeout_s"] = 1.0
        path = tmp_path / "profile.yaml"
        path.write_text(json.dumps(made))
        done = own.run(str(binary("quiver-tg")), "run", str(path), "--core", "0", check=False)
        assert done.returncode == 1
        assert "nobody answers for its gateway 198.18.1.9" in done.stderr, done.stderr


def test_behind_a_switch_it_speaks_with_its_tag(tmp_path: Path) -> None:
    with ExitStack() as stack:
        own, switching, host = stack.enter_context(namespaces("generator", "switch", "host"))
        switch = stack.enter_context(open_vswitch(switching))
        switch.vsctl("add-br", "br0", "--", "set", "bridge", "br0", "datapath_type=netdev")
        veth(switching, "trunk", own, "port0", 1500)
        own.sysctl("net.ipv6.conf.port0.disable_ipv6", 1)
        veth(switching, "access", host, "eth0", 1500)
        switch.vsctl("add-port", "br0", "trunk", "trunks=100", "vlan_mode=trunk")
        switch.vsctl("add-port", "br0", "access", "tag=100", "vlan_mode=access")
        host.ip("addr", "add", "198.18.0.1/24", "dev", "eth0")
        port = {
            "af_packet": {"interface": "port0"},
            "vlan": 100,
            "ip4": ["198.18.0.2-198.18.0.9"],
            "gateway": "198.18.0.1",
        }
        path = tmp_path / "profile.yaml"
        path.write_text(json.dumps({"ports": [port], "streams": [{"from": 0, "to": 0}]}))
        # The profile is only loaded once its gateway, the host behind the switch, has answered.
        with serving(path, tmp_path / "tg.sock", own):
            wait_until("it answers", lambda: answers(ping(host, "198.18.0.7", count=1)) == 1)
