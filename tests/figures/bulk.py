"""How many routes a second a program gives the router by its API.

`PYTHONPATH=tests .venv/bin/python -m figures.bulk [--routes 1000000]`

The routes come as command lines, 50,000 in a request `script`: one request after the answer of the
other, and all requests at once.
"""

from __future__ import annotations

import argparse
import json
import socket
import threading
import time

from quiver_api import Quiver

from figures.mirror import prefix
from peers.router import Router

#: Lines of a request.
LINES = 50_000

INTERFACE = """create loopback interface instance 1
set interface state loop1 up
set interface ip address loop1 10.0.0.1/24
ip neighbor loop1 10.0.0.2 02:00:00:00:00:02"""


def portions(verb: str, routes: int) -> list[str]:
    """The lines, in the portions of requests."""
    lines = [f"ip route {verb} {prefix(n)} via 10.0.0.2 loop1\n" for n in range(routes)]
    return ["".join(lines[at : at + LINES]) for at in range(0, routes, LINES)]


def count(router: Router) -> int:
    """Routes of /32."""
    rows = router.json("show ip fib table 0 summary")
    return sum(int(row["count"]) for row in rows if row["length_bits"] == 32)


def one_by_one(router: Router, texts: list[str]) -> float:
    """Seconds for one request after the other."""
    with Quiver(str(router.api_socket)) as api:
        start = time.monotonic()
        for text in texts:
            api.script(text)
        return time.monotonic() - start


def at_once(router: Router, texts: list[str]) -> float:
    """Seconds for all requests at once."""
    messages = []
    for number, text in enumerate(texts):
        call = {"jsonrpc": "2.0", "id": number, "method": "script", "params": {"text": text}}
        messages.append(json.dumps(call).encode() + b"\n")
    with socket.socket(socket.AF_UNIX) as api:
        api.connect(str(router.api_socket))
        sending = threading.Thread(target=lambda: [api.sendall(message) for message in messages])
        start = time.monotonic()
        sending.start()
        with api.makefile("rb") as answers:
            answered = 0
            while answered < len(messages):
                answer = json.loads(answers.readline())
                assert "error" not in answer, answer
                answered += "id" in answer
        seconds = time.monotonic() - start
        sending.join()
    return seconds


def main() -> None:
    """Print a line for each figure."""
    words = argparse.ArgumentParser(description="How many routes a second the API takes.")
    words.add_argument("--routes", type=int, default=1_000_000, help="routes")
    routes = words.parse_args().routes
    with Router() as router:
        router.configure(INTERFACE)
        before = count(router)
        for name, give in (("one request after the other", one_by_one), ("all at once", at_once)):
            for verb, wanted in (("add", routes), ("del", 0)):
                seconds = give(router, portions(verb, routes))
                assert count(router) == before + wanted, count(router)
                print(f"{name}: {verb} {routes / seconds:,.0f} routes/s")


if __name__ == "__main__":
    main()
