"""Addresses of one prefix as those of another, by RFC 6296."""

import ipaddress


def _sum(words: list[int]) -> int:
    return sum(words) % 0xFFFF


def _words(address: str) -> list[int]:
    packed = ipaddress.IPv6Address(address).packed
    return [int.from_bytes(packed[at : at + 2], "big") for at in range(0, 16, 2)]


def npt(address: str, source: str, target: str) -> str:
    """Return what an address of the prefix `source` is in `target`; both have the same length."""
    one, other = ipaddress.IPv6Network(source), ipaddress.IPv6Network(target)
    words = _words(address)
    place = 3 if one.prefixlen <= 48 else next(at for at in range(4, 8) if words[at] != 0xFFFF)
    rest = int(ipaddress.IPv6Address(address)) & int(one.hostmask)
    mapped = _words(str(ipaddress.IPv6Address(int(other.network_address) | rest)))
    mapped[place] = (words[place] + _sum(_words(str(one[0]))) - _sum(_words(str(other[0])))) % 0xFFFF
    return str(ipaddress.IPv6Address(b"".join(word.to_bytes(2, "big") for word in mapped)))
