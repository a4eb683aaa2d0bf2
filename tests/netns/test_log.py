"""The log: in the journal of systemd by its native protocol, and in a file as text or JSON."""

from __future__ import annotations

import json
from pathlib import Path

from peers.processes import Process, run, wait_until
from peers.router import Router, binary

#: Stands in for the journal in a mount namespace of its own, and starts the router as systemd does:
#: its standard error is the stream that `JOURNAL_STREAM` names. Prints a message a line.
JOURNAL = r"""
import ctypes, json, os, pathlib, socket, struct, subprocess, sys
subprocess.run(["mount", "-t", "tmpfs", "none", "/run"], check=True)
place = pathlib.Path("/run/systemd/journal/socket")
place.parent.mkdir(parents=True)
journal = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
journal.bind(str(place))
error = open(sys.argv[1], "w")
stat = os.fstat(error.fileno())
# The router ends with its journal.
child = subprocess.Popen(sys.argv[2:], stderr=error, preexec_fn=lambda: ctypes.CDLL(None).prctl(1, 15),
                         env={**os.environ, "JOURNAL_STREAM": f"{stat.st_dev}:{stat.st_ino}"})
while True:
    data, fields = journal.recv(1 << 20), {}
    while data:
        name, _, rest = data.partition(b"\n")
        if b"=" in name:
            key, _, value = name.partition(b"=")
            data = rest
        else:
            key, (length,) = name, struct.unpack("<Q", rest[:8])
            value, data = rest[8:8 + length], rest[9 + length:]
        fields[key.decode()] = value.decode()
    print(json.dumps(fields), flush=True)
"""


def test_a_router_that_systemd_started_logs_to_the_journal(tmp_path: Path) -> None:
    startup, stderr = tmp_path / "startup.conf", tmp_path / "stderr"
    startup.write_text(f"unix {{ nodaemon runtime-dir {tmp_path} }}\n")
    journal = Process(
        [
            *["unshare", "--mount", "--kill-child", "python3", "-c", JOURNAL, str(stderr)],
            *[str(binary("quiverd")), "--config", str(startup)],
        ]
    )
    try:
        journal.wait_for_text("ready; commands at", 60.0)
        client = [str(binary("quiverctl")), "--socket", str(tmp_path / "api.sock")]
        run(*client, "create loopback interface")
        run(*client, "create loopback interface instance 0", check=False)
        journal.wait_for_text("refused", 20.0)
        messages = [json.loads(line) for line in journal.text().splitlines() if line.startswith("{")]
        assert all(message["SYSLOG_IDENTIFIER"] == "quiverd" for message in messages)
        own = [message for message in messages if message["QUIVER_CLASS"] == "cli"]
        assert [message["PRIORITY"] for message in own] == ["6", "4"], own
        assert "create loopback interface" in own[0]["MESSAGE"]
        assert stderr.read_text() == "", "it leads to the journal, which has the messages already"
        run(*client, "set logging class cli syslog-level crit")
        told = len(journal.text())
        run(*client, "create loopback interface instance 0", check=False)
        run(*client, "set logging class cli syslog-level info")
        run(*client, "create loopback interface")
        wait_until("the next message", lambda: "create loopback" in journal.text()[told:])
        assert "refused" not in journal.text()[told:]
    finally:
        journal.forget()


def test_a_log_file_has_objects_when_json_is_wanted() -> None:
    with Router(sections="logging { format json }") as router:
        router.ctl("create loopback interface")
        router.refused("create loopback interface instance 0")
        lines = [line for line in router.log_text().splitlines() if line.startswith("{")]
        messages = [json.loads(line) for line in lines]
        cli = [message for message in messages if message["class"] == "cli"]
        assert [message["level"] for message in cli] == ["info", "warn"]
        assert all(set(message) >= {"time", "level", "class", "message"} for message in messages)
        router.ctl("set logging format text")
        router.ctl("create loopback interface")
        assert router.log_text().splitlines()[-1].split()[1] == "INFO"
        assert "logging format" not in router.ctl("show running-config")
