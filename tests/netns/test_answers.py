"""The answers of shows on a router with devices of the host: each has its published form."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from peers import answers
from peers.network import namespaces
from peers.processes import parse_json, wait_until
from peers.router import Router
from peers.session import Session

#: Forms of shows with words behind their names.
LONGER = [
    "show memif memif1/0 descriptors",
    "show ip4-full-reassembly details",
    "show ip fib summary",
    "show ip6 fib summary",
    "show hardware-interfaces verbose",
    "show lldp detail",
]
#: Events published while one client reads none of them; many more than are kept for it.
EVENTS = 30_000


@pytest.fixture
def router(tmp_path: Path) -> Iterator[Router]:
    """A router with a tap, a capture file and both ends of a memif connection."""
    with namespaces("answers") as (namespace,), Router(namespace) as router:
        router.configure(
            f"""
            create tap id 0 host-if-name answers0
            create pcap id 0 tx {tmp_path}/sent.pcap
            create memif socket id 1 filename {tmp_path}/memif.sock
            create memif socket id 2 filename {tmp_path}/memif.sock
            create interface memif id 0 socket-id 1 master
            create interface memif id 0 socket-id 2 slave
            set interface state tap0 up
            set interface state memif1/0 up
            set interface state memif2/0 up
            set interface ip address memif1/0 10.9.0.1/24
            set interface lldp tap0
            """
        )
        router.wait_for_link("memif1/0", "memif2/0")
        yield router


def test_every_show_of_a_router_with_devices_of_the_host_answers_as_published(router: Router) -> None:
    """Shows that want a word more are refused; all others answer."""
    answered = 0
    for show in [*answers.published(), *LONGER]:
        answer = router.answer(f"{show} json")
        if answer.code == 0 and show != "show schema":
            answers.check(show, parse_json(answer.out))
            answered += 1
        assert answer.code == 0 or show not in LONGER, answer.err
    assert answered > len(answers.published()) // 2, f"{answered} shows answered"


def test_a_subscriber_that_does_not_read_loses_the_oldest_events_and_is_told_how_many(router: Router) -> None:
    """Another client reads all of them meanwhile, and commands are executed as ever."""
    router.configure("create loopback interface instance 7")
    with Session(router.api_socket) as idle:
        idle.send("subscribe event interface")
        wait_until("it is subscribed", lambda: router.json("show subscriptions")[0]["subscribers"] == 1, 5.0)
        states = ("up", "down")
        router.configure("\n".join(f"set interface state loop7 {states[n % 2]}" for n in range(EVENTS)))
        heard = lost = 0
        while heard + lost < EVENTS:
            said = idle.event()
            heard, lost = heard + ("lost" not in said), lost + said.get("lost", 0)
        assert (heard + lost, lost > 0) == (EVENTS, True), f"{heard} heard, {lost} lost"
