"""How long the Internet's prefixes are: counts by length of a real table (2026), to be scaled."""

from __future__ import annotations

from collections.abc import Mapping

IP4_LENGTHS: Mapping[int, int] = {
    8: 16, 9: 13, 10: 38, 11: 103, 12: 299, 13: 581, 14: 1203, 15: 2100, 16: 13490, 17: 8235, 18: 13798,
    19: 24870, 20: 42611, 21: 50750, 22: 108623, 23: 96510, 24: 537698, 25: 20, 26: 3, 27: 11, 28: 18,
    29: 17, 30: 3, 31: 3, 32: 886,
}  # fmt: skip

IP6_LENGTHS: Mapping[int, int] = {
    16: 1, 19: 1, 20: 16, 21: 3, 22: 7, 23: 8, 24: 30, 25: 8, 26: 15, 27: 20, 28: 193, 29: 4371, 30: 650,
    31: 284, 32: 22548, 33: 2926, 34: 2603, 35: 1043, 36: 5996, 37: 880, 38: 1617, 39: 1377, 40: 13418,
    41: 903, 42: 2301, 43: 1001, 44: 14365, 45: 1553, 46: 3039, 47: 3153, 48: 75488, 49: 11, 50: 3, 52: 1,
    55: 1, 56: 24, 58: 20, 60: 2, 64: 184, 112: 2, 122: 1, 124: 4, 125: 9, 126: 19, 127: 42, 128: 6,
}  # fmt: skip


def scaled(counts: Mapping[int, int], total: int, room: Mapping[int, int] | None = None) -> dict[int, int]:
    """The same distribution with `total` prefixes: shares rounded down, the rest to the largest remainders.

    `room` limits a length (there are few /8); what does not fit goes to the longest common length, the
    one with most prefixes.
    """
    whole = sum(counts.values())
    shares = {length: total * count / whole for length, count in counts.items()}
    result = {length: int(share) for length, share in shares.items()}
    missing = total - sum(result.values())
    for length in sorted(shares, key=lambda key: shares[key] - result[key], reverse=True)[:missing]:
        result[length] += 1
    if room:
        most = max(counts, key=lambda key: counts[key])
        for length, limit in room.items():
            excess = max(0, result.get(length, 0) - limit)
            if excess:
                result[length] -= excess
                result[most] += excess
    return result
