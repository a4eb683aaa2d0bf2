"""A full IPv6 table: seeded, global unicast space, no duplicates, half of it behind each of two ports."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quiver_lab.tables.lengths import IP6_LENGTHS, scaled
from quiver_lab.tables.popularity import Demand, draw_entries

FIRST_16_BITS: tuple[int, ...] = (
    0x2001, 0x2003, *range(0x2400, 0x2410), *range(0x2600, 0x2610), *range(0x2800, 0x2810),
    *range(0x2A00, 0x2A10), 0x2C0E, 0x2C0F,
)  # fmt: skip
"""Where the registries allocate from."""

NOT_ROUTED_32: tuple[int, ...] = (0x2001_0000, 0x2001_0002, 0x2001_0DB8)
"""Teredo, benchmarking (RFC 5180: the lab's own interfaces) and documentation, as /32."""

NESTED_SHARE = 0.85
"""Share of prefixes longer than /32 that lie inside one of the shorter ones."""

ALL_64 = np.uint64(0xFFFF_FFFF_FFFF_FFFF)

Columns = tuple[NDArray[np.uint64], NDArray[np.uint64]]


@dataclass(frozen=True, slots=True)
class Ip6Table:
    """Columns of a table: prefix i is (high[i], low[i])/lengths[i], by next_hops[i] behind ports[i]."""

    high: NDArray[np.uint64]
    low: NDArray[np.uint64]
    lengths: NDArray[np.uint8]
    ports: NDArray[np.uint8]
    next_hops: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.high)


def _masks(lengths: NDArray[np.uint8]) -> Columns:
    """Network masks, high and low halves; a shift by 64 is not defined, so zero is selected instead."""
    high_bits = np.minimum(lengths, 64).astype(np.uint64)
    low_bits = (np.maximum(lengths, 64) - 64).astype(np.uint64)
    high = np.where(high_bits == 0, np.uint64(0), ALL_64 << (np.uint64(64) - np.maximum(high_bits, 1)))
    low = np.where(low_bits == 0, np.uint64(0), ALL_64 << (np.uint64(64) - np.maximum(low_bits, 1)))
    return high, low


def _random_64(count: int, rng: np.random.Generator) -> NDArray[np.uint64]:
    return rng.integers(0, 1 << 64, count, dtype=np.uint64)


def _candidates(length: int, count: int, parents: Ip6Table | None, rng: np.random.Generator) -> Columns:
    """Random prefixes of one length, perhaps with duplicates."""
    firsts = np.array(FIRST_16_BITS, dtype=np.uint64)
    high = (rng.choice(firsts, count) << np.uint64(48)) | (_random_64(count, rng) >> np.uint64(16))
    if parents is not None and length > 32:
        nested = rng.random(count) < NESTED_SHARE
        parent = rng.integers(0, len(parents), count)
        parent_mask, _ = _masks(parents.lengths[parent])
        inside = parents.high[parent] | (_random_64(count, rng) & ~parent_mask)
        high = np.where(nested, inside, high)
    mask_high, mask_low = _masks(np.full(count, length, dtype=np.uint8))
    high, low = high & mask_high, _random_64(count, rng) & mask_low
    good = np.ones(count, dtype=np.bool_)
    for block in NOT_ROUTED_32:
        shift = 64 - min(length, 32)
        good &= (high >> np.uint64(shift)) != np.uint64(block >> (shift - 32))
    return high[good], low[good]


def _prefixes(length: int, count: int, parents: Ip6Table | None, rng: np.random.Generator) -> Columns:
    """`count` different prefixes of one length."""
    found = np.empty((0, 2), dtype=np.uint64)
    while len(found) < count:
        more = np.stack(_candidates(length, 2 * (count - len(found)) + 64, parents, rng), axis=1)
        both = np.concatenate([found, more])
        order = np.lexsort((both[:, 1], both[:, 0]))
        both = both[order]
        fresh = np.ones(len(both), dtype=np.bool_)
        fresh[1:] = (both[1:] != both[:-1]).any(axis=1)
        found = both[fresh]
    chosen = rng.permutation(len(found))[:count]
    return found[chosen, 0], found[chosen, 1]


def _table(rows: list[tuple[int, Columns]]) -> Ip6Table:
    high = np.concatenate([columns[0] for _, columns in rows])
    low = np.concatenate([columns[1] for _, columns in rows])
    lengths = np.concatenate([np.full(len(columns[0]), length, dtype=np.uint8) for length, columns in rows])
    ports = ((high >> np.uint64(48)) & np.uint64(1)).astype(np.uint8)
    return Ip6Table(high, low, lengths, ports, np.zeros(len(high), dtype=np.uint8))


def generate_ip6(count: int, next_hops: int, seed: int) -> Ip6Table:
    """A table of `count` prefixes. The port is the lowest of the first 16 bits: a more specific prefix
    then always leads to the same port as what covers it, so that every frame's way out is known."""
    rng = np.random.default_rng(seed)
    room = {length: len(FIRST_16_BITS) * (1 << (length - 16)) // 4 for length in range(16, 24)}
    by_length = {length: n for length, n in scaled(IP6_LENGTHS, count, room).items() if n}
    rows = [(length, _prefixes(length, n, None, rng)) for length, n in by_length.items() if length <= 32]
    parents = _table(rows)
    rows += [(length, _prefixes(length, n, parents, rng)) for length, n in by_length.items() if length > 32]
    table = _table(rows)
    shuffled = rng.permutation(count)
    return Ip6Table(
        table.high[shuffled],
        table.low[shuffled],
        table.lengths[shuffled],
        table.ports[shuffled],
        rng.integers(0, next_hops, count, dtype=np.uint8),
    )


def ip6_from_prefixes(prefixes: Sequence[str], next_hops: int, seed: int) -> Ip6Table:
    """A table of given prefixes, those shorter than /16 and those of the lab's own space left out."""
    pairs = [prefix.split("/") for prefix in prefixes]
    raw = b"".join(socket.inet_pton(socket.AF_INET6, address) for address, _ in pairs)
    halves = np.frombuffer(raw, dtype=">u8").astype(np.uint64).reshape(-1, 2)
    lengths = np.array([int(length) for _, length in pairs], dtype=np.uint8)
    good = lengths >= 16
    for block in NOT_ROUTED_32:
        shifts = (64 - np.minimum(lengths, 32)).astype(np.uint64)
        good &= (halves[:, 0] >> shifts) != (np.uint64(block << 32) >> shifts)
    columns = np.ascontiguousarray(halves[good, 0]), np.ascontiguousarray(halves[good, 1])
    lengths = lengths[good]
    ports = ((columns[0] >> np.uint64(48)) & np.uint64(1)).astype(np.uint8)
    hops = np.random.default_rng(seed).integers(0, next_hops, len(lengths), dtype=np.uint8)
    return Ip6Table(*columns, lengths, ports, hops)


def ip6_destinations(table: Ip6Table, port: int, demand: Demand) -> Columns:
    """Addresses inside the table's prefixes that lead to `port`, in the order of the traffic."""
    rng = demand.rng(port)
    mine = np.flatnonzero(table.ports == port)
    chosen = mine[draw_entries(len(mine), demand, rng)]
    mask_high, mask_low = _masks(table.lengths[chosen])
    high = table.high[chosen] | (_random_64(demand.draws, rng) & ~mask_high)
    low = table.low[chosen] | (_random_64(demand.draws, rng) & ~mask_low)
    return high, low


def ip6_texts(high: NDArray[np.uint64], low: NDArray[np.uint64]) -> list[str]:
    """Addresses in their canonical text (RFC 5952)."""
    raw = np.stack([high, low], axis=1).astype(">u8").tobytes()
    return [socket.inet_ntop(socket.AF_INET6, raw[at : at + 16]) for at in range(0, len(raw), 16)]
