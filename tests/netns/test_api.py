"""Programs at the router's API: each command a method, described by the router itself."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest
from quiver_api import (
    AsyncQuiver,
    ConfigurationChangedError,
    NoSuchMethodError,
    NotConnectedError,
    Quiver,
    RefusedError,
)

from peers.router import ROOT, Router, binary

#: Routes of a long answer: more than a page.
ROUTES = 3_000


@pytest.fixture(scope="module")
def router() -> Iterator[Router]:
    """A router with an interface."""
    with Router() as made:
        made.configure("create loopback interface instance 1\nset interface state loop1 up")
        yield made


@pytest.fixture
def api(router: Router) -> Iterator[Quiver]:
    """A client that waits."""
    with Quiver(str(router.api_socket), timeout_s=30) as made:
        yield made


def test_commands_are_methods_that_answer_as_the_command_line_does(router: Router, api: Quiver) -> None:
    shown = api.show_interface()
    assert shown == router.json("show interface")
    assert [row["name"] for row in shown["interfaces"]] == ["loop1"]
    api.set_interface_mtu(packet=True, mtu=1400, interface="loop1")
    assert api.show_interface(interface="loop1")["interfaces"][0]["mtu_bytes"] == 1400
    assert api.cli("show interface loop1 json").json == api.show_interface(interface="loop1")


def test_a_refusal_says_what_is_wrong_and_what_would_be_right(api: Quiver) -> None:
    with pytest.raises(RefusedError) as told:
        api.set_interface_state(interface="loop9", state="up")
    assert "loop9" in told.value.what
    assert told.value.remedy
    with pytest.raises(NoSuchMethodError):
        api.call("set_lamp", state="on")
    with pytest.raises(RefusedError, match="state"):
        api.call("set_interface_state", interface="loop1")
    assert api.show_version(), "the connection serves on"


def test_long_answers_are_whole(api: Quiver) -> None:
    api.ip_table(add=True, table=7)
    api.ip_route(prefix="10.0.0.0/32", count=ROUTES, table=7, via=[{"drop": True}])
    rows = api.show_ip_fib(table=7)
    assert sum(row["prefix"].startswith("10.") for row in rows) == ROUTES


def test_two_writers_do_not_overwrite_each_other(router: Router, api: Quiver) -> None:
    with Quiver(str(router.api_socket)) as other:
        known = other.generation()
        api.set_interface_mtu(packet=True, mtu=1500, interface="loop1", if_generation=api.generation())
        with pytest.raises(ConfigurationChangedError):
            other.set_interface_mtu(packet=True, mtu=1300, interface="loop1", if_generation=known)
        with pytest.raises(ConfigurationChangedError):
            other.script("set interface mtu packet 1300 loop1\n", if_generation=known)
        assert other.show_interface(interface="loop1")["interfaces"][0]["mtu_bytes"] == 1500


def test_tasks_share_a_connection(router: Router) -> None:
    async def run() -> None:
        async with AsyncQuiver(str(router.api_socket)) as api:
            rows = await asyncio.gather(*(api.show_interface(interface="loop1") for _ in range(20)))
            assert all(row["interfaces"][0]["name"] == "loop1" for row in rows)
            with pytest.raises(RefusedError):
                await api.set_interface_state(interface="loop9", state="up")

    asyncio.run(run())


def test_events_come_to_who_subscribes(router: Router, api: Quiver) -> None:
    told = []

    def listen() -> None:
        with Quiver(str(router.api_socket), timeout_s=30) as listener:
            for event in listener.subscribe("interface"):
                told.append(event)
                if event.json and "loop1" in json.dumps(event.json):
                    return

    thread = threading.Thread(target=listen)
    thread.start()
    while thread.is_alive():
        for state in ("down", "up"):
            api.set_interface_state(interface="loop1", state=state)
        thread.join(0.1)
    assert told


def test_the_document_describes_every_command(router: Router, api: Quiver) -> None:
    document = api.call("rpc.discover")
    methods = {method["name"]: method for method in document["methods"]}
    commands = api.call("commands")
    assert len(methods) > 300
    missing = [
        row["command"] for row in commands if "show" in row["command"] and not methods_have(methods, row)
    ]
    assert not missing
    printed = subprocess.run(
        [str(binary("quiverd")), "--reference", "openrpc"], check=True, capture_output=True, text=True
    )
    assert json.loads(printed.stdout) == document
    assert methods["show_interface"]["result"]["schema"]["properties"]["interfaces"]["type"] == "array"


def methods_have(methods: dict[str, object], row: dict[str, str]) -> bool:
    """Is a command of the schema among the methods?"""
    return row["command"].replace(" ", "_").replace("-", "_") in methods


def test_the_types_of_the_client_are_up_to_date() -> None:
    done = subprocess.run([sys.executable, str(ROOT / "clients/python/generate.py"), "--check"], check=False)
    assert done.returncode == 0


def test_nobody_there_is_said(tmp_path_factory: pytest.TempPathFactory) -> None:
    with pytest.raises(NotConnectedError, match="no router"):
        Quiver(str(tmp_path_factory.mktemp("nobody") / "api.sock"))
