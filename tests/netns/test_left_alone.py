"""The walk-through of docs/guide/left-alone.md: a document, a change that nobody confirms, the way back."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from netns.test_guides import GUIDES, blocks
from peers.namespace import Namespace, veth
from peers.network import namespaces, reach
from peers.processes import wait_until
from peers.router import Router, binary

GUIDE = GUIDES / "left-alone.md"
#: The addresses of the guide: the hosts behind its interfaces.
UPLINK, INSIDE = "192.0.2.254", "198.51.100.2"
#: How long a change waits for its confirmation, seconds; the guide has 60.
CONFIRM_S = 3


@dataclass(frozen=True)
class Rack:
    """A router in a namespace, hosts behind its two interfaces, and its document."""

    own: Namespace
    uplink: Namespace
    inside: Namespace
    folder: Path
    document: Path

    def start(self) -> Router:
        """Start the router as it was left."""
        return Router(self.own, folder=self.folder)

    def forwards(self) -> None:
        """A packet crosses it."""
        reach(self.inside, UPLINK)


@pytest.fixture
def rack(tmp_path: Path) -> Iterator[Rack]:
    """What the guide takes for given."""
    with namespaces("router", "uplink", "inside") as (own, uplink, inside):
        veth(own, "eth1", uplink, "eth0")
        veth(own, "eth2", inside, "eth0")
        for name in ("eth1", "eth2"):
            own.sysctl(f"net.ipv6.conf.{name}.disable_ipv6", 1)
        uplink.ip("addr", "add", f"{UPLINK}/24", "dev", "eth0")
        uplink.ip("route", "add", "198.51.100.0/24", "via", "192.0.2.1")
        inside.ip("addr", "add", f"{INSIDE}/24", "dev", "eth0")
        inside.ip("route", "add", "default", "via", "198.51.100.1")
        document = tmp_path / "router.yaml"
        document.write_text(blocks(GUIDE, "yaml")[0])
        folder = tmp_path / "router"
        folder.mkdir()
        yield Rack(own, uplink, inside, folder, document)


def mtu(router: Router) -> int:
    """The MTU of the uplink."""
    return int(router.json("show interface host-eth1")["interfaces"][0]["mtu_bytes"])


def states(router: Router) -> dict[int, str]:
    """The versions, by number, and the message and state of each in one text."""
    rows = router.json("show configuration history")
    return {int(row["number"]): " ".join(str(value) for value in row.values()) for row in rows}


def test_a_change_that_cuts_the_router_off_is_taken_back(rack: Rack) -> None:
    text = rack.document.read_text()
    router = rack.start()
    assert router.answer("check", str(rack.document)).code == 0
    assert "host-eth1" in router.answer("diff", str(rack.document)).out
    assert router.answer("apply", str(rack.document), "--message", "first").code == 0
    rack.forwards()

    # A mistake: the uplink's address is another one. Its author's session breaks at once.
    rack.document.write_text(text.replace("192.0.2.1/24", "203.0.113.1/24"))
    words = ["apply", str(rack.document), "--confirm", f"{CONFIRM_S}s", "--message", "new uplink"]
    client = subprocess.Popen([str(binary("quiverctl")), "--socket", str(router.api_socket), *words])
    wait_until("the change is there", lambda: "203.0.113.1" in router.ctl("show interface address"))
    client.kill()
    client.wait()
    wait_until("it is taken back", lambda: "192.0.2.1/24" in router.ctl("show interface address"))
    rack.forwards()
    told = states(router)
    assert "first" in told[2]
    assert "returned" in told[3]
    assert "new uplink" in told[3]

    # A good change, confirmed from another session.
    rack.document.write_text(
        text.replace("    state: up\n  host-eth2", "    state: up\n    mtu: 1400\n  host-eth2")
    )
    words[2:] = ["--confirm", "60s", "--message", "smaller"]
    assert router.answer(*words).code == 0
    assert mtu(router) == 1400
    assert router.answer("confirm").code == 0

    # Off and on: what was confirmed is there. Then back to the first one, comments and all.
    router.kill()
    router = rack.start()
    assert mtu(router) == 1400
    rack.forwards()
    assert router.answer("rollback", "2").code == 0
    assert mtu(router) != 1400
    rack.forwards()
    assert "# the uplink" in router.answer("export", "2").out

    # Watched.
    router.ctl("prom enable")
    read = "import urllib.request; print(urllib.request.urlopen('http://127.0.0.1:9482/metrics').read().decode())"
    rack.own.ip("link", "set", "lo", "up")
    assert "quiver_interface_rx_packets_total" in rack.own.run(sys.executable, "-c", read).stdout
    router.stop()


def test_a_router_that_is_switched_off_while_a_change_waits_starts_as_before(rack: Rack) -> None:
    text = rack.document.read_text()
    router = rack.start()
    assert router.answer("apply", str(rack.document), "--message", "first").code == 0
    rack.document.write_text(text.replace("192.0.2.1/24", "203.0.113.1/24"))
    assert router.answer("apply", str(rack.document), "--confirm", "600s").code == 0
    router.kill()
    router = rack.start()
    assert "192.0.2.1/24" in router.ctl("show interface address")
    rack.forwards()
    router.stop()
