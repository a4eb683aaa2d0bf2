"""What the cases share: hosts, frames, and packets with segments, as scapy builds them."""
import sys

from scapy.all import ICMPv6EchoRequest, ICMPv6ParamProblem, ICMPv6TimeExceeded, Ether, IP, IPv6
from scapy.all import IPv6ExtHdrSegmentRouting, Raw, TCP, UDP, wrpcap

assert sys.version_info >= (3, 11)

SOURCE = "2001:db8:0::2"
LAST = "fc00:0:9::9"
OUR_E0 = "2001:db8:0::1"


def sid(number):
    """A local SID of the router: fc00:0:1::NUMBER."""
    return f"fc00:0:1::{number:x}"


def into(packet, port=0):
    """The frame in which the host behind a port sends it."""
    return Ether(src=f"02:00:00:00:00:0{port}", dst=f"02:fe:00:00:00:0{port}") / packet


def out(port, packet):
    """The frame in which the router sends it to the host behind a port."""
    return Ether(src=f"02:fe:00:00:00:0{port}", dst=f"02:00:00:00:00:0{port}") / packet


def segments(path, left, payload, hlim=64, reduced=False, named=None, **more):
    """A packet on its path, with so many segments left."""
    listed = path[1:] if reduced else path
    srh = IPv6ExtHdrSegmentRouting(addresses=list(reversed(listed)), segleft=left, **more)
    if named is not None:
        srh.nh = named
    return IPv6(src=SOURCE, dst=path[len(path) - 1 - left], hlim=hlim) / srh / payload


def plain(to, payload, hlim=64, named=None):
    """A packet without segments."""
    header = IPv6(src=SOURCE, dst=to, hlim=hlim)
    if named is not None:
        header.nh = named
    return header / payload


def data(size=20):
    return UDP(sport=1000, dport=2000) / Raw(bytes(range(size)))


def problem(about, code, pointer):
    """What the router answers: a parameter problem."""
    return error(about, ICMPv6ParamProblem(code=code, ptr=pointer))


def expired(about):
    return error(about, ICMPv6TimeExceeded(code=0))


def error(about, icmp):
    quoted = bytes(about)[: 1280 - 48]
    return out(0, IPv6(src=OUR_E0, dst=SOURCE, hlim=64) / icmp / Raw(quoted))


def write(name, frames):
    wrpcap(name, frames)
