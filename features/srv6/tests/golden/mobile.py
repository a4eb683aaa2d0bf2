"""What the cases of the mobile user plane share: GTP-U as scapy builds it, SIDs by their bits (RFC 9433 §6)."""

from ipaddress import IPv4Address, IPv6Address, IPv6Network

from headend import counters, label, srh
from scapy.all import (
    IP,
    TCP,
    UDP,
    Ether,
    ICMP,
    IPv6,
    IPv6ExtHdrSegmentRouting,
    Raw,
    raw,
    wrpcap,
)
from scapy.all import (
    ICMPv6EchoRequest,
    ICMPv6PacketTooBig,
    ICMPv6ParamProblem,
    ICMPv6TimeExceeded,
    IPv6ExtHdrDestOpt,
)
from scapy.contrib.gtp import GTP_U_Header, GTPPDUSessionContainer

GNB4, UPF4 = "10.0.0.2", "192.0.2.9"
GNB6, UPF6 = "2001:db8:0::2", "2001:db8:6::9"
TEID = 0x01020304
RECOVERY = bytes([14, 0])
ECHO_REQUEST, ECHO_RESPONSE, ERROR_INDICATION, END_MARKER = 1, 2, 26, 254
TAGS = {ECHO_RESPONSE: 8, ECHO_REQUEST: 4, ERROR_INDICATION: 2, END_MARKER: 1}


def into(packet, port=0):
    """The frame in which the host behind a port sends it."""
    return Ether(src=f"02:00:00:00:00:0{port}", dst=f"02:fe:00:00:00:0{port}") / packet


def out(port, packet):
    """The frame in which the router sends it to the host behind a port."""
    return Ether(src=f"02:fe:00:00:00:0{port}", dst=f"02:00:00:00:00:0{port}") / packet


def user4(size=20, **more):
    return (
        IP(src="172.16.0.5", dst="198.51.100.7", ttl=61, id=1, **more)
        / UDP(sport=1000, dport=2000)
        / Raw(bytes(n & 255 for n in range(size)))
    )


def user6(size=20):
    return (
        IPv6(src="2001:db8:a::5", dst="2001:db8:b::7", hlim=61)
        / TCP(sport=1000, dport=2000)
        / Raw(bytes(n & 255 for n in range(size)))
    )


def gtp(user, teid=TEID, qfi=None, rqi=0, uplink=False):
    """A user's packet in GTP-U, with a PDU session container or without."""
    if qfi is None:
        return GTP_U_Header(gtp_type=255, teid=teid, E=0) / Raw(raw(user))
    session = (
        GTPPDUSessionContainer(type=1, QFI=qfi)
        if uplink
        else GTPPDUSessionContainer(type=0, R=rqi, QFI=qfi)
    )
    return GTP_U_Header(gtp_type=255, teid=teid) / session / Raw(raw(user))


def message(kind, teid=0, number=None, elements=b""):
    """Another GTP-U message."""
    rest = b"" if number is None else number.to_bytes(2, "big") + bytes(2)
    flags = 0x30 if number is None else 0x32
    length = len(rest) + len(elements)
    return Raw(
        bytes([flags, kind])
        + length.to_bytes(2, "big")
        + teid.to_bytes(4, "big")
        + rest
        + elements
    )


def sid(prefix, *parts):
    """The prefix and (value, bits) behind it."""
    network = IPv6Network(prefix)
    address, at = int(network.network_address), network.prefixlen
    for value, bits in parts:
        at += bits
        address |= value << (128 - at)
    return str(IPv6Address(address))


def session(qfi=0, rqi=0, teid=TEID):
    """Args.Mob.Session."""
    return (qfi << 34 | rqi << 33 | teid, 40)


def ip4(address):
    return (int(IPv4Address(address)), 32)


def number_of(inner):
    return 4 if isinstance(inner, IP) else 41


def segments(source, path, user, hlim=63, tc=0, fl=None):
    """What a gateway makes: the user's packet behind segments; without an SRH when there is only one."""
    outer = IPv6(
        src=source, dst=path[0], hlim=hlim, tc=tc, fl=label(user) if fl is None else fl
    )
    if len(path) == 1:
        outer.nh = number_of(user)
        return outer / Raw(raw(user))
    return outer / srh(path, nh=number_of(user)) / Raw(raw(user))


def tlv(elements):
    if not elements:
        return b""
    found = bytes([10, len(elements) + 2, 1, len(elements)]) + elements
    pad = -len(found) % 8
    return found + (
        b"" if pad == 0 else b"\0" if pad == 1 else bytes([4, pad - 2]) + bytes(pad - 2)
    )


def carried(source, path, kind, elements=b"", hlim=63, teid=0, left=None, fl=None):
    """A message behind segments."""
    left = len(path) - 1 if left is None else left
    listed = b"".join(IPv6Address(segment).packed for segment in reversed(path)) + tlv(
        elements
    )
    head = bytes([59, len(listed) // 8, 4, left, len(path) - 1, 0]) + TAGS[
        kind
    ].to_bytes(2, "big")
    flow = max(((teid | 1) * 0x9E3779B1 & 0xFFFFFFFF) >> 12, 1) if fl is None else fl
    return IPv6(
        src=source, dst=path[len(path) - 1 - left], nh=43, hlim=hlim, fl=flow
    ) / Raw(head + listed)


def over4(source, destination, payload, sport=2152, ttl=64, checksum=0, **more):
    datagram = (
        UDP(sport=sport, dport=2152, chksum=checksum)
        if checksum == 0
        else UDP(sport=sport, dport=2152)
    )
    return IP(src=source, dst=destination, ttl=ttl, **more) / datagram / payload


def over6(source, destination, payload, sport=2152, hlim=64, checksum=None, **more):
    datagram = (
        UDP(sport=sport, dport=2152)
        if checksum is None
        else UDP(sport=sport, dport=2152, chksum=checksum)
    )
    return IPv6(src=source, dst=destination, hlim=hlim, **more) / datagram / payload


def write(name, frames):
    wrpcap(name, frames)
