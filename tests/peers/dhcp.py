"""DHCP servers and clients as peers in a host's namespace: dnsmasq, Kea, dhclient and udhcpc."""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from peers.namespace import Namespace
from peers.processes import SCRATCH, Process, need, wait_until

#: Writes down what the client says, and touches nothing of the machine.
SCRIPT = """#!/bin/sh
{ echo "event=$1"; env; echo; } >> %s
exit 0
"""


def scratch(prefix: str) -> Path:
    """A folder of a peer's own."""
    return Path(tempfile.mkdtemp(dir=SCRATCH, prefix=prefix))


class Dnsmasq:
    """dnsmasq as a DHCP server, with the ranges that it serves."""

    def __init__(self, host: Namespace, *words: str) -> None:
        need("dnsmasq")
        folder = scratch("dnsmasq-")
        self.process: Process = host.start(
            "dnsmasq",
            "--no-daemon",
            "--conf-file=/dev/null",
            "--port=0",
            "--user=root",
            "--log-dhcp",
            "--no-ping",
            "--dhcp-authoritative",
            f"--dhcp-leasefile={folder}/leases",
            *words,
        )
        self.process.wait_for_text(
            "DHCP, IP range" if "--dhcp-range=10." in " ".join(words) else "DHCPv6, IP range"
        )

    def wait_for(self, text: str) -> None:
        """Wait until it has logged this."""
        self.process.wait_for_text(text)


class Kea6:
    """Kea as a DHCPv6 server on one of its host's addresses."""

    def __init__(self, host: Namespace, device: str, address: str, subnets: list[dict[str, Any]]) -> None:
        need("kea-dhcp6")
        folder = scratch("kea-")
        config = {
            "Dhcp6": {
                "interfaces-config": {"interfaces": [f"{device}/{address}"]},
                "lease-database": {"type": "memfile", "persist": False},
                "server-id": {"type": "LL", "persist": False},
                "subnet6": subnets,
                "loggers": [
                    {
                        "name": "kea-dhcp6",
                        "output_options": [{"output": "stdout", "flush": True}],
                        "severity": "INFO",
                    }
                ],
            }
        }
        place = folder / "kea.json"
        place.write_text(json.dumps(config))
        settings = [f"{name}={folder}" for name in ("KEA_PIDFILE_DIR", "KEA_LOCKFILE_DIR")]
        self.process: Process = host.start("env", *settings, "kea-dhcp6", "-c", str(place))
        self.process.wait_for_text("DHCP6_STARTED")


@dataclass
class Said:
    """What a client told its script: one event after another."""

    place: Path
    script: Path = field(init=False)

    def __post_init__(self) -> None:
        self.script = self.place.with_suffix(".sh")
        self.script.write_text(SCRIPT % self.place)
        self.script.chmod(0o755)

    def events(self) -> list[dict[str, str]]:
        """The variables of each event."""
        if not self.place.exists():
            return []
        blocks = self.place.read_text().split("\n\n")
        pairs = [
            [line.partition("=")[::2] for line in block.splitlines()] for block in blocks if block.strip()
        ]
        return [dict(block) for block in pairs]

    def last(self, key: str) -> str | None:
        """The value that was told last."""
        values = [event[key] for event in self.events() if key in event]
        return values[-1] if values else None


class Udhcpc:
    """udhcpc, which goes on until it is ended."""

    def __init__(self, host: Namespace, device: str, *words: str) -> None:
        need("udhcpc")
        self.said = Said(scratch("udhcpc-") / "said")
        self.process: Process = host.start(
            "udhcpc",
            "-f",
            "-i",
            device,
            "-t",
            "20",
            "-T",
            "1",
            "-A",
            "1",
            "-s",
            str(self.said.script),
            *words,
        )


class Dhclient:
    """ISC's dhclient."""

    def __init__(self, host: Namespace, device: str, *words: str) -> None:
        need("dhclient")
        folder = scratch("dhclient-")
        self.host, self.device = host, device
        self.said = Said(folder / "said")
        (folder / "conf").write_text("timeout 20; retry 1; initial-interval 1; backoff-cutoff 2;\n")
        self._words = [
            "dhclient", "-v", "-d", "-sf", str(self.said.script), "-cf", str(folder / "conf"),
            "-lf", str(folder / "leases"), "-pf", str(folder / "pid"), *words,
        ]  # fmt: skip
        if "-6" in words:
            wait_until("the client has a link-local address", self._has_link_local)
        self.process: Process = host.start(*self._words, device)

    def _has_link_local(self) -> bool:
        shown = self.host.ip("-6", "addr", "show", "dev", self.device, "scope", "link", "-tentative")
        return "fe80::" in shown

    def release(self) -> None:
        """Give back what it has."""
        self.process.stop()
        self.host.run(*self._words, "-r", self.device, check=False)
