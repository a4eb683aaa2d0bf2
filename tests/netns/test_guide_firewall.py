"""The commands of `docs/guide/firewall.md`, typed in their order, and hosts that meet the result."""

from __future__ import annotations

import re
from pathlib import Path

from peers.namespace import veth
from peers.network import answers, namespaces, ping, ping_all
from peers.router import Router

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guide" / "firewall.md"
SERVER, MAIL, REMOTE = "192.0.2.10", "192.0.2.20", "203.0.113.1"


def lines() -> list[str]:
    """All lines of the guide's blocks of commands."""
    text = GUIDE.read_text(encoding="utf-8")
    blocks = re.findall(r"^ *```text\n(.*?)^ *```$", text, re.MULTILINE | re.DOTALL)
    return [line.strip() for block in blocks for line in block.splitlines()]


def test_the_firewall_of_the_guide_lets_pass_what_it_says() -> None:
    with namespaces("router", "lan", "wan") as (space, lan, wan), Router(space) as router:
        for name, host in (("lan", lan), ("wan", wan)):
            veth(space, name, host, name)
            router.ctl(f"create host-interface name {name}")
        for address in (SERVER, MAIL):
            lan.ip("addr", "add", f"{address}/24", "dev", "lan")
        lan.ip("route", "add", "default", "via", "192.0.2.1")
        wan.ip("addr", "add", f"{REMOTE}/24", "dev", "wan")
        wan.ip("route", "add", "default", "via", "203.0.113.2")
        commands = lines()
        last = commands.index(next(line for line in commands if "index 3" in line))
        assert len(commands) > 15
        for line in commands[:last]:
            router.ctl(line)
        ping_all(lan, REMOTE, "-I", MAIL)
        ping_all(wan, SERVER)
        listener = lan.start("python3", "-u", "-m", "http.server", "443", "--bind", SERVER)
        listener.wait_for_text("Serving")
        other = lan.start("python3", "-u", "-m", "http.server", "80", "--bind", SERVER)
        other.wait_for_text("Serving")
        fetch = ("curl", "-s", "-o", "/dev/null", "--max-time", "3")
        assert wan.run(*fetch, f"http://{SERVER}:443/").returncode == 0
        assert wan.run(*fetch, f"http://{SERVER}:80/", check=False).returncode != 0
        # An element of the set that the list denies first: the server is out of reach, then not.
        router.ctl(f"set acl-plugin address-set blocked add {REMOTE}/32")
        assert answers(ping(wan, SERVER, count=1)) == 0
        assert wan.run(*fetch, f"http://{SERVER}:443/", check=False).returncode != 0
        made = router.json("show acl-plugin log")["actions"]
        assert sum(row["made"] for row in made if row["action"] == "deny") > 0
        router.ctl(f"set acl-plugin address-set blocked del {REMOTE}/32")
        ping_all(wan, SERVER)
        for line in commands[last:]:
            router.ctl(line)
        assert answers(ping(lan, REMOTE, "-I", MAIL, count=1)) == 0
        ping_all(lan, REMOTE, "-I", SERVER)
        text = router.ctl("show running-config")
        # The list that another one took the place of is detached.
        gone = [line.removesuffix(" del") for line in commands if line.endswith(" del")]
        for line in (line for line in commands if line.removesuffix(" del") not in gone):
            if line.startswith("set acl-plugin interface"):
                assert line.removesuffix(" sequence 5") in text, text
            # A single rule stands in the list that it was put into, and has gone again.
            elif line.startswith("set acl-plugin") and "acl-rule" not in line:
                assert line in text, text
        router.check_sound()
