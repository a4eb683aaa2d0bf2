"""Segments: the background goes by a policy to local SIDs of the same router, and comes out as it was."""

from __future__ import annotations

from stress.change import Change

POLICY = "fc00:0:1::b1"
OTHER = "fc00:0:1::b2"
BACKGROUND = "22.0.0.0/8"

#: The way by End and End.DT4, and back to the port that the background leaves by.
SEGMENTS = (
    "ip table add 77",
    "ip6 table add 77",
    f"ip route add {BACKGROUND} table 77 via 198.19.1.2 pg1",
    "set sr encaps source addr fc00:0:1::1",
    "sr localsid address fc00:0:1::e behavior end",
    "sr localsid address fc00:0:1::f behavior end psp",
    "sr localsid address fc00:0:1::4 behavior end.dt4 77",
    f"sr policy add bsid {POLICY} next fc00:0:1::e next fc00:0:1::4 encap",
    f"sr policy add bsid {OTHER} next fc00:0:1::4 encap.red",
    f"sr steer l3 {BACKGROUND} via bsid {POLICY}",
)

NO_SEGMENTS = (
    f"sr steer del l3 {BACKGROUND} via bsid {POLICY}",
    f"sr policy del bsid {OTHER}",
    f"sr policy del bsid {POLICY}",
    "sr localsid del address fc00:0:1::4",
    "sr localsid del address fc00:0:1::f",
    "sr localsid del address fc00:0:1::e",
    f"ip route del {BACKGROUND} table 77",
    "ip6 table del 77",
    "ip table del 77",
)

SEGMENT_CHANGES = [
    Change(
        "lists and weights of a loaded policy",
        cycle=(
            f"sr policy mod bsid {POLICY} add sl next fc00:0:1::f next fc00:0:1::4 weight 3",
            f"sr policy mod bsid {POLICY} mod sl index 0 weight 7",
            f"sr policy mod bsid {POLICY} add sl next fc00:0:1::4",
            f"sr policy mod bsid {POLICY} mod sl index 1 weight 1",
            f"sr policy mod bsid {POLICY} del sl index 2",
            f"sr policy mod bsid {POLICY} del sl index 1",
        ),
        setup=SEGMENTS,
        teardown=NO_SEGMENTS,
    ),
    Change(
        "steering that moves between policies",
        cycle=(
            f"sr steer del l3 {BACKGROUND} via bsid {POLICY}",
            f"sr steer l3 {BACKGROUND} via bsid {OTHER}",
            f"sr steer del l3 {BACKGROUND} via bsid {OTHER}",
            f"sr steer l3 {BACKGROUND} via bsid {POLICY}",
        ),
        setup=SEGMENTS,
        teardown=NO_SEGMENTS,
    ),
    Change(
        "loaded local SIDs replaced",
        cycle=(
            "sr localsid replace address fc00:0:1::e behavior end psp",
            "sr localsid replace address fc00:0:1::4 behavior end.dt46 77",
            "sr localsid replace address fc00:0:1::4 behavior end.dt4 77",
            "sr localsid replace address fc00:0:1::e behavior end",
        ),
        setup=SEGMENTS,
        teardown=NO_SEGMENTS,
    ),
    Change(
        "local SIDs and policies beside loaded ones",
        cycle=(
            "sr localsid address fc00:0:1::1{n} behavior end psp usd",
            "sr localsid address fc00:0:1::2{n} behavior end.dt46 0",
            "sr localsid address fc00:0:2:{n}::/64 behavior un c-sid 16",
            "sr policy add bsid fc00:0:1::c{n} next fc00:0:1::1{n} next fc00:0:1::4 encap",
            "sr steer l3 23.0.{n}.0/24 via bsid fc00:0:1::c{n}",
            "sr steer del l3 23.0.{n}.0/24 via bsid fc00:0:1::c{n}",
            "sr policy del bsid fc00:0:1::c{n}",
            "sr localsid del address fc00:0:2:{n}::/64",
            "sr localsid del address fc00:0:1::2{n}",
            "sr localsid del address fc00:0:1::1{n}",
        ),
        setup=SEGMENTS,
        teardown=NO_SEGMENTS,
    ),
    Change(
        "what stands in the outer headers of a loaded policy",
        cycle=(
            "set sr encaps source addr fc00:0:1::2",
            "set sr encaps hop-limit 70",
            "set sr encaps source addr fc00:0:1::1",
            "set sr encaps hop-limit 64",
        ),
        setup=SEGMENTS,
        teardown=NO_SEGMENTS,
    ),
    Change(
        "the route to a loaded policy's first segment",
        cycle=(
            "ip route add fc00:0:1::/64 via drop",
            "ip route del fc00:0:1::/64",
        ),
        setup=SEGMENTS,
        teardown=NO_SEGMENTS,
    ),
]
