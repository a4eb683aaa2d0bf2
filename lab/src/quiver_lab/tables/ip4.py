"""A full IPv4 table: seeded, unicast space only, no duplicates, half of it behind each of two ports."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quiver_lab.tables.lengths import IP4_LENGTHS, scaled
from quiver_lab.tables.popularity import Demand, draw_entries

FIRST_UNICAST = 1 << 24
END_UNICAST = 224 << 24

NOT_ROUTED: tuple[tuple[int, int], ...] = tuple(
    (int.from_bytes(socket.inet_aton(address), "big"), length)
    for address, length in (
        ("10.0.0.0", 8), ("100.64.0.0", 10), ("127.0.0.0", 8), ("169.254.0.0", 16), ("172.16.0.0", 12),
        ("192.0.0.0", 24), ("192.0.2.0", 24), ("192.88.99.0", 24), ("192.168.0.0", 16), ("198.18.0.0", 15),
        ("198.51.100.0", 24), ("203.0.113.0", 24),
    )
)  # fmt: skip
"""Special-purpose space (RFC 6890); 198.18.0.0/15 is where the lab's own interfaces live (RFC 2544)."""


@dataclass(frozen=True, slots=True)
class Ip4Table:
    """Columns of a table: prefix i is addresses[i]/lengths[i], by neighbour next_hops[i] behind ports[i]."""

    addresses: NDArray[np.uint32]
    lengths: NDArray[np.uint8]
    ports: NDArray[np.uint8]
    next_hops: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.addresses)


def _routed(addresses: NDArray[np.uint32], length: int) -> NDArray[np.bool_]:
    """Which prefixes of this length lie in unicast space and touch no special block."""
    good: NDArray[np.bool_] = (addresses >= FIRST_UNICAST) & (addresses < END_UNICAST)
    for block, block_length in NOT_ROUTED:
        shift = 32 - min(length, block_length)
        good &= (addresses >> np.uint32(shift)) != (block >> shift)
    return good


def _prefixes(length: int, count: int, rng: np.random.Generator) -> NDArray[np.uint32]:
    """`count` different prefixes of one length."""
    shift = np.uint32(32 - length)
    if length <= 16:
        every = np.arange(1 << length, dtype=np.uint32) << shift
        every = every[_routed(every, length)]
        return rng.choice(every, count, replace=False)
    found = np.empty(0, dtype=np.uint32)
    while len(found) < count:
        more = rng.integers(FIRST_UNICAST, END_UNICAST, count - len(found) + 1024, dtype=np.uint32)
        more = (more >> shift) << shift
        found = np.unique(np.concatenate([found, more[_routed(more, length)]]))
    return rng.choice(found, count, replace=False)


def _room() -> dict[int, int]:
    """How many prefixes of the short lengths there are to choose from."""
    room = {}
    for length in range(8, 17):
        every = np.arange(1 << length, dtype=np.uint32) << np.uint32(32 - length)
        room[length] = int(_routed(every, length).sum())
    return room


def generate_ip4(count: int, next_hops: int, seed: int) -> Ip4Table:
    """A table of `count` prefixes. The port is the parity of the first octet: a more specific prefix
    then always leads to the same port as what covers it, so that every frame's way out is known."""
    rng = np.random.default_rng(seed)
    by_length = {length: n for length, n in scaled(IP4_LENGTHS, count, _room()).items() if n}
    addresses = np.concatenate([_prefixes(length, n, rng) for length, n in by_length.items()])
    lengths = np.repeat(
        np.fromiter(by_length, dtype=np.uint8), np.fromiter(by_length.values(), dtype=np.int64)
    )
    shuffled = rng.permutation(count)
    return _table(addresses[shuffled], lengths[shuffled], next_hops, rng)


def _table(
    addresses: NDArray[np.uint32], lengths: NDArray[np.uint8], next_hops: int, rng: np.random.Generator
) -> Ip4Table:
    ports = ((addresses >> np.uint32(24)) & np.uint32(1)).astype(np.uint8)
    hops = rng.integers(0, next_hops, len(addresses), dtype=np.uint8)
    return Ip4Table(addresses, lengths, ports, hops)


def ip4_from_prefixes(prefixes: Sequence[str], next_hops: int, seed: int) -> Ip4Table:
    """A table of given prefixes, those in special-purpose space and those shorter than /8 left out."""
    pairs = [prefix.split("/") for prefix in prefixes]
    raw = b"".join(socket.inet_aton(address) for address, _ in pairs)
    addresses = np.frombuffer(raw, dtype=">u4").astype(np.uint32)
    lengths = np.array([int(length) for _, length in pairs], dtype=np.uint8)
    good = lengths >= 8
    for length in np.unique(lengths[good]).tolist():
        here = lengths == length
        good[here] &= _routed(addresses[here], length)
    return _table(addresses[good], lengths[good], next_hops, np.random.default_rng(seed))


def ip4_destinations(table: Ip4Table, port: int, demand: Demand) -> NDArray[np.uint32]:
    """Addresses inside the table's prefixes that lead to `port`, in the order of the traffic: a prefix
    by popularity, then an address of it at random."""
    rng = demand.rng(port)
    mine = np.flatnonzero(table.ports == port)
    chosen = mine[draw_entries(len(mine), demand, rng)]
    host_bits = (32 - table.lengths[chosen]).astype(np.uint64)
    host = rng.integers(0, 1 << 32, demand.draws, dtype=np.uint64) & (
        (np.uint64(1) << host_bits) - np.uint64(1)
    )
    result: NDArray[np.uint32] = (table.addresses[chosen].astype(np.uint64) | host).astype(np.uint32)
    return result


def ip4_texts(addresses: NDArray[np.uint32]) -> list[str]:
    """Dotted quads."""
    raw = addresses.astype(">u4").tobytes()
    return [socket.inet_ntoa(raw[at : at + 4]) for at in range(0, len(raw), 4)]
