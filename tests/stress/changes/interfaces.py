"""Interfaces and their devices come, go and change."""

from __future__ import annotations

from stress.change import Change

INTERFACES = [
    Change(
        "addresses of another interface",
        cycle=(
            "set interface ip address pg0 203.0.113.1/24",
            "set interface ip address pg0 2001:db8:1::1/64",
            "set interface ip address del pg0 2001:db8:1::1/64",
            "set interface ip address del pg0 203.0.113.1/24",
        ),
    ),
    Change(
        "a second address of a loaded interface",
        cycle=(
            "set interface ip address memif1/0 203.0.113.1/24",
            "set interface ip address del memif1/0 203.0.113.1/24",
        ),
    ),
    Change(
        "loopbacks",
        cycle=(
            "create loopback interface instance {n}",
            "set interface state loop{n} up",
            "set interface ip address loop{n} 203.0.113.1/24",
            "delete loopback interface intfc loop{n}",
        ),
    ),
    Change(
        "packet generator interfaces and streams",
        cycle=(
            "create packet-generator interface pg7",
            "set interface state pg7 up",
            "packet-generator new { name other interface pg7 node ip4-input rate 10000 worker 0 "
            "data { UDP: 198.19.0.2 -> 198.51.100.1 UDP: 1 -> 2 incrementing 18 } }",
            "packet-generator enable-stream other",
            "packet-generator delete other",
            "delete packet-generator interface pg7",
        ),
        setup=("ip route add 198.51.100.1/32 via drop",),
        teardown=("ip route del 198.51.100.1/32",),
    ),
    Change(
        "memif interfaces",
        cycle=(
            "create interface memif id {n} socket-id 7 slave ring-size 4096",
            "set interface state memif7/{n} up",
            "delete interface memif memif7/{n}",
        ),
        setup=("create memif socket id 7 filename {folder}/other.sock",),
        teardown=("delete memif socket id 7",),
    ),
    Change(
        "memif interfaces that connect to each other",
        cycle=(
            "create interface memif id {n} socket-id 7 master",
            "create interface memif id {n} socket-id 8 slave ring-size 4096",
            "set interface state memif7/{n} up",
            "set interface state memif8/{n} up",
            "show memif memif8/{n}",
            "delete interface memif memif8/{n}",
            "delete interface memif memif7/{n}",
        ),
        setup=(
            "create memif socket id 7 filename {folder}/other.sock",
            "create memif socket id 8 filename {folder}/./other.sock",
        ),
        teardown=("delete memif socket id 7", "delete memif socket id 8"),
    ),
    Change(
        "taps",
        cycle=(
            "create tap id {n} host-if-name stress{n}",
            "set interface state tap{n} up",
            "delete tap tap{n}",
        ),
    ),
    Change(
        "state, MTU and MAC address of another interface",
        cycle=(
            "set interface state loop0 up",
            "set interface mtu packet 9000 loop0",
            "set interface mac address loop0 02:fe:00:00:77:77",
            "set interface mtu packet 1500 loop0",
            "set interface state loop0 down",
        ),
        setup=("create loopback interface instance 0",),
        teardown=("delete loopback interface intfc loop0",),
    ),
    Change(
        "MTU and promiscuous mode of a loaded interface",
        cycle=(
            "set interface mtu packet 9000 memif1/1",
            "set interface promiscuous on memif1/0",
            "set interface mtu packet 1500 memif1/1",
            "set interface promiscuous off memif1/0",
        ),
    ),
    Change(
        "queues moved between workers",
        cycle=(
            "set interface rx-placement tap7 worker 1",
            "set interface rx-mode tap7 interrupt",
            "set interface rx-placement tap7 worker 0",
            "set interface rx-mode tap7 adaptive",
        ),
        setup=("create tap id 7 host-if-name stress7", "set interface state tap7 up"),
        teardown=("delete tap tap7",),
    ),
]
