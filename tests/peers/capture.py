"""What a peer sees: tcpdump on its device, and what tcpdump finds wrong with it."""

from __future__ import annotations

import re
import signal
import tempfile
from pathlib import Path

from peers.namespace import Namespace
from peers.processes import SCRATCH, run, wait_until

#: Packets written down at most.
PACKETS_MAX = 2000
#: What `tcpdump -vv` prints about a packet with something wrong: checksums, lengths, cut headers.
WRONG = re.compile(
    r"bad cksum|incorrect|wrong icmp6? cksum|bad (udp|icmp6?|tcp|igmp) cksum|bad-cksum"
    r"|truncated|missing!|bad-hlen|bad-len|length [0-9]+ \(invalid\)|\[\|(ip6?|tcp|udp|icmp6?|ether|arp)\]"
    r"|bad opt|\[bad hdr length|wrong length",
    re.IGNORECASE,
)


def lines_of(file: Path, *words: str) -> list[str]:
    """What tcpdump says of a capture, one line per packet."""
    text = run("tcpdump", "-nn", "-r", str(file), *words).stdout
    return re.sub(r"\n[ \t]+", " ", text).splitlines()


def wrong_in(file: Path) -> list[str]:
    """Packets of a capture that tcpdump finds something wrong with."""
    return [line for line in lines_of(file, "-vv", "-e") if WRONG.search(line)]


class Capture:
    """tcpdump on a device while the block runs; then `packets` and `wrong`."""

    def __init__(self, namespace: Namespace, device: str, what: str = "", packets: int = PACKETS_MAX) -> None:
        self._namespace, self._device, self._what, self._packets = namespace, device, what, packets
        self.file = Path(tempfile.mkstemp(dir=SCRATCH, suffix=".pcap")[1])

    def __enter__(self) -> Capture:
        self._process = self._namespace.start(
            *[
                "tcpdump",
                "-i",
                self._device,
                "-nn",
                "-U",
                "--immediate-mode",
                "-s",
                "0",
                "-Q",
                "in",
                "-B",
                "16384",
            ],
            *["-Z", "root", "-c", str(self._packets), "-w", str(self.file)],
            *([self._what] if self._what else []),
        )
        self._process.wait_for_text("listening on")
        return self

    def __exit__(self, *_: object) -> None:
        self._process.stop(signal.SIGINT)

    def lines(self, *words: str) -> list[str]:
        """One line per packet."""
        return lines_of(self.file, *words)

    def wait_for(self, packets: int) -> None:
        """Wait until so many packets were seen."""
        wait_until(f"{packets} packets captured", lambda: len(self.lines()) >= packets)

    def check(self, packets_min: int = 1) -> None:
        """There is something in it, and nothing is wrong with it."""
        lines = self.lines("-vv")
        wrong = wrong_in(self.file)
        self.file.unlink(missing_ok=True)
        assert len(lines) >= packets_min, f"only {len(lines)} packets captured"
        assert not wrong, f"{len(wrong)} of {len(lines)} packets are wrong, such as:\n" + "\n".join(
            wrong[:10]
        )
