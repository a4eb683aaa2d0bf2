"""Multicast routes, and what the router tells the hosts of a link."""

from __future__ import annotations

from stress.change import Change

GROUPS = [
    Change(
        "multicast routes",
        cycle=(
            "ip mroute add 232.1.{n}.1 via memif1/0 Accept via memif1/1 Forward via pg0 Forward",
            "ip mroute add 198.18.0.9 232.1.{n}.1 via memif1/0 Accept via memif1/1 Forward",
            "ip mroute add ff0e::{n} via memif1/0 Accept via memif1/1 Forward",
            "ip mroute del ff0e::{n}",
            "ip mroute del 198.18.0.9 232.1.{n}.1",
            "ip mroute del 232.1.{n}.1",
        ),
    ),
    Change(
        "groups that the router joins on a loaded interface",
        cycle=(
            "igmp listen enable int memif1/1 239.1.{n}.1",
            "mld listen enable int memif1/1 ff0e::{n}",
            "mld listen disable int memif1/1 ff0e::{n}",
            "igmp listen disable int memif1/1 239.1.{n}.1",
        ),
    ),
    Change(
        "router advertisements on a loaded interface",
        cycle=(
            "ip6 nd memif1/1 prefix 2001:db8:{n}::/64 3600 1800",
            "ip6 nd memif1/1 ra-interval 4 3 ra-lifetime 60 ra-preference high",
            "ip6 nd memif1/1 no ra-suppress",
            "ip6 nd memif1/1 ra-suppress",
            "ip6 nd memif1/1 no ra-interval ra-lifetime ra-preference",
            "ip6 nd memif1/1 no prefix 2001:db8:{n}::/64",
        ),
        setup=("set interface ip address memif1/1 2001:2:1::1/64",),
        teardown=("set interface ip address del memif1/1 2001:2:1::1/64",),
    ),
]
