"""The commands of `docs/guide/flow-records.md`, typed in their order, and what a collector gets."""

from __future__ import annotations

import re
from pathlib import Path

from peers.ipfix import Collector
from peers.management import attach_collector, listener
from peers.network import namespaces, network, ping_all
from peers.processes import wait_until

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guide" / "flow-records.md"
#: packetDeltaCount, and the port of IPFIX.
PACKETS, IPFIX_PORT = 2, 4739


def lines() -> list[str]:
    """All lines of the guide's blocks of commands."""
    text = GUIDE.read_text(encoding="utf-8")
    blocks = re.findall(r"^ *```text\n(.*?)^ *```$", text, re.MULTILINE | re.DOTALL)
    return [line.strip() for block in blocks for line in block.splitlines()]


def test_every_command_of_the_guide_is_accepted_and_records_come() -> None:
    with namespaces("collector") as (host,), network(mtu=1500) as net:
        router = net.router
        attach_collector(router, host)
        with listener(host, IPFIX_PORT) as sock:
            assert len(lines()) >= 11
            for line in lines():
                router.ctl(line)
            written = router.answer("show running-config").out
            for line in lines():
                assert line.startswith("show") or line in written, written
            ping_all(net.left.host, net.right.ip4, count=25)
            router.ctl("flowprobe flush")
            collector = Collector(sock)
            wait_until("a record of the pings", lambda: any(one[PACKETS] == 25 for one in collector.read()))
        assert router.json("show sflow")["interfaces"][0]["packets"] >= 25
        router.check_sound()
