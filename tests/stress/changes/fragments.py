"""Fragments put together, and extension headers looked at."""

from __future__ import annotations

from stress.change import Change

FRAGMENTS = [
    Change(
        "virtual reassembly on and off on the loaded interfaces",
        cycle=(
            "set interface reassembly memif1/0 virtual on",
            "set interface reassembly memif1/1 virtual ip4",
            "set interface reassembly memif1/0 virtual off",
            "set interface reassembly memif1/1 virtual off",
        ),
    ),
    Change(
        "full reassembly on and off on the loaded interfaces",
        cycle=(
            "set interface reassembly memif1/0 on",
            "set interface reassembly memif1/1 on",
            "set interface reassembly memif1/0 off",
            "set interface reassembly memif1/1 off",
        ),
    ),
    Change(
        "limits of reassembly",
        cycle=(
            "set ip reassembly max-reassemblies 8192 max-reassembly-length 45",
            "set ip reassembly virtual timeout 100 expire-walk-interval 10",
            "set ip reassembly max-buffers 1024",
            "set ip reassembly max-reassemblies 1024 max-reassembly-length 128",
            "set ip reassembly virtual timeout 2000 expire-walk-interval 100",
            "set ip reassembly max-buffers 4096",
            "show ip4-full-reassembly details",
        ),
        setup=("set interface reassembly memif1/0 virtual on",),
        teardown=("set interface reassembly memif1/0 virtual off",),
    ),
    Change(
        "policies for hop-by-hop options",
        cycle=(
            "set ip6 hop-by-hop memif1/0 drop",
            "set ip6 hop-by-hop memif1/0 process",
            "set ip6 hop-by-hop memif1/0 punt",
            "set ip6 hop-by-hop memif1/0 ignore",
        ),
    ),
]
