"""Routers configured by Ansible, with the modules of `clients/ansible`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from peers.router import ROOT, Router

PLAYBOOK = shutil.which("ansible-playbook", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
pytestmark = pytest.mark.skipif(PLAYBOOK is None, reason="needs ansible-core")

DOCUMENT = """\
interfaces:
  # the service
  loop1:
    loopback: {{}}
    state: up
    mtu: {mtu}
    addresses: [198.51.100.1/32]
"""


@pytest.fixture
def router(tmp_path: Path) -> Iterator[Router]:
    """A router that keeps versions."""
    with Router(unix=f"state-dir {tmp_path}/state") as made:
        yield made


def play(router: Router, folder: Path, module: str, arguments: dict[str, Any], *words: str) -> dict[str, Any]:
    """Run a module on this machine; what it returned."""
    modules, answer = folder / "collections/ansible_collections/quiver/router", folder / "answer.json"
    if not modules.exists():
        modules.parent.mkdir(parents=True)
        modules.symlink_to(ROOT / "clients/ansible")
    asked = {
        f"quiver.router.{module}": {"address": str(router.api_socket), **arguments},
        "register": "told",
        "ignore_errors": True,
    }
    copy = {"content": "{{ told | to_json }}", "dest": str(answer)}
    kept = {"ansible.builtin.copy": copy, "check_mode": False, "diff": False}
    book = folder / "play.json"
    book.write_text(json.dumps([{"hosts": "localhost", "gather_facts": False, "tasks": [asked, kept]}]))
    environment = {
        **os.environ,
        "ANSIBLE_COLLECTIONS_PATH": str(folder / "collections"),
        "ANSIBLE_LOCALHOST_WARNING": "false",
        "ANSIBLE_INVENTORY_UNPARSED_WARNING": "false",
        "ANSIBLE_HOME": str(folder / "home"),
        "ANSIBLE_PYTHON_INTERPRETER": sys.executable,
        "PYTHONPATH": str(ROOT / "clients/python/src"),
    }
    assert PLAYBOOK is not None
    command = [PLAYBOOK, *words, str(book)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return dict(json.loads(answer.read_text()))


def test_a_play_that_has_run_changes_nothing_when_it_runs_again(router: Router, tmp_path: Path) -> None:
    wanted = {"document": DOCUMENT.format(mtu=1400), "message": "from the play"}
    checked = play(router, tmp_path, "config", wanted, "--check", "--diff")
    assert checked["changed"]
    assert any("loop1" in line for line in checked["commands"])
    assert not router.json("show interface")["interfaces"]
    first = play(router, tmp_path, "config", wanted)
    assert first["changed"], first
    assert router.json("show interface loop1")["interfaces"][0]["mtu_bytes"] == 1400
    assert not play(router, tmp_path, "config", wanted)["changed"]
    history = router.ctl("configuration history")
    assert "from the play" in history
    assert router.json("show configuration")["pending"] is None, "the module has confirmed"


def test_mistakes_are_told_by_line_and_nothing_is_changed(router: Router, tmp_path: Path) -> None:
    text = DOCUMENT.format(mtu=1400) + "  loop2:\n    loopback: {}\n    stat: up\n"
    told = play(router, tmp_path, "config", {"document": text})
    assert told["failed"]
    assert "document.yaml:10:5" in told["msg"]
    assert "state" in told["msg"]
    assert not router.json("show interface")["interfaces"]


def test_commands_and_facts(router: Router, tmp_path: Path) -> None:
    lines = ["create loopback interface instance 3", "show interface loop3"]
    told = play(router, tmp_path, "command", {"commands": lines})
    assert told["changed"]
    assert told["answers"][1]["json"]["interfaces"][0]["name"] == "loop3"
    told = play(router, tmp_path, "command", {"commands": ["show version"]})
    assert not told["changed"]
    facts = play(router, tmp_path, "facts", {})["ansible_facts"]["quiver"]
    assert facts["interfaces"]["interfaces"][0]["name"] == "loop3"
    assert facts["version"]["version"]


def test_a_refusal_is_a_failure(router: Router, tmp_path: Path) -> None:
    told = play(router, tmp_path, "command", {"commands": ["set interface state loop9 up"]})
    assert told["failed"]
    assert "loop9" in told["msg"]
