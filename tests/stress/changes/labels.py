"""Labels: their routes and tables, tunnels and policies, and what takes labelled packets in."""

from __future__ import annotations

from stress.change import Change

LABELS = [
    Change(
        "routes of labels",
        cycle=(
            "mpls local-label add {n}16 eos via 198.18.1.2 memif1/1 out-labels {n}17",
            "mpls local-label add {n}16 non-eos via 198.18.0.2 memif1/0 out-labels {n}18 19",
            "mpls local-label add {n}20 eos via ip4-lookup-in-table 0",
            "mpls local-label del {n}20 eos",
            "mpls local-label del {n}16 non-eos",
            "mpls local-label del {n}16 eos",
        ),
        setup=("mpls table add 0",),
        teardown=("mpls table del 0",),
    ),
    Change(
        "the route of a label led elsewhere, to several next hops and to none",
        cycle=(
            "mpls local-label add 1000 eos via 198.18.1.2 memif1/1 out-labels 17",
            "mpls local-label add 1000 eos via 198.18.0.2 memif1/0 out-labels 18 19",
            "mpls local-label add 1000 eos via 198.18.0.2 memif1/0 via 198.18.1.2 memif1/1 weight 3",
            "mpls local-label add 1000 eos via ip4-lookup-in-table 0",
            "mpls local-label add 1000 eos via drop",
            "mpls local-label del 1000 eos",
        ),
        setup=("mpls table add 0",),
        teardown=("mpls table del 0",),
    ),
    Change(
        "labelled packets taken in on a loaded interface",
        cycle=("set interface mpls memif1/0 enable", "set interface mpls memif1/0 disable"),
        setup=("mpls table add 0",),
        teardown=("mpls table del 0",),
    ),
    Change(
        "the loaded route with implicit null, and without a label",
        cycle=(
            "ip route replace 21.0.0.0/8 via 198.18.1.2 memif1/1 out-labels 3",
            "ip route replace 21.0.0.0/8 via 198.18.1.2 memif1/1",
        ),
    ),
    Change(
        "tunnels that send by labels",
        cycle=(
            "mpls tunnel add instance {n} via 198.18.1.2 memif1/1 out-labels 33",
            "set interface state mpls-tunnel{n} up",
            "ip route add 62.2.{n}.0/24 via mpls-tunnel{n}",
            "ip route del 62.2.{n}.0/24",
            "mpls tunnel del mpls-tunnel{n}",
        ),
    ),
]
