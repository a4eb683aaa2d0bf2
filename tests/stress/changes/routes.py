"""Routes, their next hops and their tables."""

from __future__ import annotations

from stress.change import Change

BULK = 100_000

#: Routes of an exec file, one command each.
FILE_ROUTES = 2_000

NEXT_HOPS_KNOWN = tuple(
    f"ip neighbor memif1/1 198.18.1.{number} 02:00:00:00:00:02 static" for number in range(3, 11)
)

NEXT_HOPS_UNKNOWN = tuple(f"ip neighbor del memif1/1 198.18.1.{number}" for number in range(3, 11))

ROUTES = [
    Change(
        f"{BULK} routes by one command",
        cycle=("exec {folder}/add.cli", "exec {folder}/del.cli"),
        files={
            "add.cli": f"ip route add 60.0.0.0/32 count {BULK} via 198.18.1.2\n",
            "del.cli": f"ip route del 60.0.0.0/32 count {BULK}\n",
        },
        round_s=0.5,
    ),
    Change(
        f"{FILE_ROUTES} routes from a file",
        cycle=("exec {folder}/add.cli", "exec {folder}/del.cli"),
        files={
            f"{verb}.cli": "".join(
                f"ip route {verb} 61.{n >> 8}.{n & 255}.0/24{via}\n" for n in range(FILE_ROUTES)
            )
            for verb, via in (("add", " via 198.18.1.2"), ("del", ""))
        },
    ),
    Change(
        "single routes",
        cycle=("ip route add 62.0.{n}.0/24 via 198.18.0.2", "ip route del 62.0.{n}.0/24"),
    ),
    Change(
        "single routes inside the loaded one",
        cycle=("ip route add 21.0.0.{n}/32 via 198.18.1.2", "ip route del 21.0.0.{n}/32"),
    ),
    Change(
        "the paths of a route replaced",
        cycle=(
            "ip route replace 62.1.0.0/24 via 198.18.0.2",
            "ip route replace 62.1.0.0/24 via 198.18.1.2",
        ),
        setup=("ip route add 62.1.0.0/24 via 198.18.1.2",),
        teardown=("ip route del 62.1.0.0/24",),
    ),
    Change(
        "a route that covers the loaded one",
        cycle=("ip route add 16.0.0.0/4 via drop", "ip route del 16.0.0.0/4"),
    ),
    Change(
        "static routes of a table replaced, and a subnet attached in it",
        cycle=(
            "ip table replace begin 78",
            "ip route add 63.0.{n}.0/24 table 78 via drop",
            "ip route add 198.18.1.0/24 table 78 via memif1/1",
            "ip table replace end 78",
            "ip route del 198.18.1.0/24 table 78",
        ),
        setup=("ip table add 78",),
        teardown=("ip table del 78",),
    ),
    Change(
        "packets counted by adjacency",
        cycle=("adjacency counters enable", "adjacency counters disable"),
    ),
    Change(
        "a seed of the flow hash, and what becomes of packets for the host",
        cycle=(
            "set ip flow-hash seed {n}",
            "ip punt policer rate 1000",
            "ip punt redirect add rx all via 198.18.1.2 memif1/1",
            "ip punt redirect del rx all",
            "ip punt policer rate 0",
            "set ip flow-hash seed 0",
        ),
    ),
    Change(
        "20,000 IPv6 routes by one command",
        cycle=(
            "ip route add 2001:db8::/64 count 20000 via 2001:2:1::2",
            "ip route del 2001:db8::/64 count 20000",
        ),
        setup=(
            "set interface ip address memif1/1 2001:2:1::1/64",
            "ip neighbor memif1/1 2001:2:1::2 02:00:00:00:00:02 static",
        ),
        teardown=(
            "ip neighbor del memif1/1 2001:2:1::2",
            "set interface ip address del memif1/1 2001:2:1::1/64",
        ),
        round_s=0.5,
    ),
    Change(
        "1,000,000 routes by one command",
        cycle=(
            "ip route add 64.0.0.0/32 count 1000000 via 198.18.1.2",
            "ip route del 64.0.0.0/32 count 1000000",
        ),
        round_s=3.0,
        is_long=True,
    ),
]

NEXT_HOPS = [
    Change(
        "the next hop of the loaded route",
        cycle=(
            "ip route add 21.0.0.0/8 via 198.18.1.3 memif1/1",
            "ip route del 21.0.0.0/8 via 198.18.1.2 memif1/1",
            "ip route add 21.0.0.0/8 via 198.18.1.2 memif1/1",
            "ip route del 21.0.0.0/8 via 198.18.1.3 memif1/1",
        ),
        setup=NEXT_HOPS_KNOWN,
        teardown=NEXT_HOPS_UNKNOWN,
    ),
    Change(
        f"the next hop that {BULK} routes share with the loaded one",
        cycle=(
            "ip route add 198.51.100.1/32 via 198.18.1.3 memif1/1",
            "ip route del 198.51.100.1/32 via 198.18.1.2 memif1/1",
            "ip route add 198.51.100.1/32 via 198.18.1.2 memif1/1",
            "ip route del 198.51.100.1/32 via 198.18.1.3 memif1/1",
        ),
        setup=(
            *NEXT_HOPS_KNOWN,
            "ip route add 198.51.100.1/32 via 198.18.1.2 memif1/1",
            f"ip route add 60.0.0.0/32 count {BULK} via 198.51.100.1",
            "ip route add 21.0.0.0/16 via 198.51.100.1",
        ),
        teardown=(
            "ip route del 21.0.0.0/16",
            f"ip route del 60.0.0.0/32 count {BULK}",
            "ip route del 198.51.100.1/32",
            *NEXT_HOPS_UNKNOWN,
        ),
    ),
    Change(
        "a loaded set of equal paths grows to 8 and shrinks",
        cycle=(
            *(f"ip route add 21.0.0.0/8 via 198.18.1.{n} memif1/1" for n in range(3, 10)),
            *(f"ip route del 21.0.0.0/8 via 198.18.1.{n} memif1/1" for n in range(3, 10)),
        ),
        setup=NEXT_HOPS_KNOWN,
        teardown=NEXT_HOPS_UNKNOWN,
    ),
    Change(
        "weights of a loaded set of paths",
        cycle=(
            "ip route add 21.0.0.0/8 via 198.18.1.3 memif1/1 weight 7",
            "ip route add 21.0.0.0/8 via 198.18.1.4 memif1/1 weight 50",
            "ip route del 21.0.0.0/8 via 198.18.1.3 memif1/1",
            "ip route del 21.0.0.0/8 via 198.18.1.4 memif1/1",
        ),
        setup=NEXT_HOPS_KNOWN,
        teardown=NEXT_HOPS_UNKNOWN,
    ),
]

TABLES = [
    Change(
        "tables with routes",
        cycle=(
            "ip table add {n}9",
            "ip route add 10.0.0.0/8 table {n}9 via 198.18.1.2 memif1/1",
            "ip route add 10.1.0.0/16 table {n}9 via drop",
            "ip6 table add {n}9",
            "ip route add 2001:db8::/32 table {n}9 via drop",
            "ip6 table del {n}9",
            "ip table del {n}9",
        ),
    ),
    Change(
        "another interface moved between tables",
        cycle=("set interface ip table loop0 77", "set interface ip table loop0 0"),
        setup=("create loopback interface instance 0", "ip table add 77"),
        teardown=("delete loopback interface intfc loop0", "ip table del 77"),
    ),
]
