#!/usr/bin/python3
"""TCP, UDP, echoes, ESP and packets with extension headers get the pool's address and come back; static mappings are reached from outside and from inside, nothing else is."""
import json

from scapy.all import (
    TCP,
    UDP,
    Ether,
    ICMPv6EchoReply,
    ICMPv6EchoRequest,
    IPv6,
    IPv6ExtHdrDestOpt,
    IPv6ExtHdrFragment,
    PadN,
    Raw,
    raw,
    wrpcap,
)

HOST, SERVER, WHOLE, REMOTE = "fd00:1::2", "fd00:1::3", "fd00:1::4", "2001:db8:9::1"
POOL, MAPPED = "2001:db8:2::10", "2001:db8:2::20"


def into(n: int, p: IPv6) -> Ether:
    return Ether(src=f"02:00:00:00:00:0{n}", dst=f"02:fe:00:00:00:0{n}") / p


def out(n: int, p: IPv6) -> Ether:
    return Ether(src=f"02:fe:00:00:00:0{n}", dst=f"02:00:00:00:00:0{n}") / p


def head(src: str, dst: str, hops: int = 64, **more) -> IPv6:
    return IPv6(src=src, dst=dst, hlim=hops, fl=0x12345, **more)


def there(upper, src: str = HOST, new: str = POOL, **more) -> None:
    """From inside, and what it becomes."""
    inside.append(into(0, head(src, REMOTE, **more) / upper.copy()))
    outside.append(out(1, head(new, REMOTE, 63, **more) / upper.copy()))


def back(upper, dst: str = HOST, old: str = POOL, **more) -> None:
    inside.append(into(1, head(REMOTE, old, **more) / upper.copy()))
    outside.append(out(0, head(REMOTE, dst, 63, **more) / upper.copy()))


def pieces(src: str, dst: str, hops: int, upper) -> list[IPv6]:
    """A datagram in two fragments."""
    whole = raw(head(src, dst, hops) / upper)[40:]
    first = IPv6ExtHdrFragment(nh=17, offset=0, m=1, id=9)
    last = IPv6ExtHdrFragment(nh=17, offset=2, m=0, id=9)
    parts = [(first, whole[:16]), (last, whole[16:])]
    return [head(src, dst, hops) / fragment / Raw(part) for fragment, part in parts]


def step(number: int, rx: str, tx: str) -> None:
    wrpcap(f"0{number}-in.{rx}.pcap", inside)
    wrpcap(f"0{number}-out.{tx}.pcap", outside)
    inside.clear()
    outside.clear()


inside, outside = [], []
options = IPv6ExtHdrDestOpt(options=[PadN(optdata=b"\0" * 4)])
there(UDP(sport=5000, dport=53) / Raw(b"question"))
there(ICMPv6EchoRequest(id=77, seq=1, data=b"echo"))
there(options / UDP(sport=5001, dport=53) / Raw(b"behind options"))
there(Raw(b"an encrypted packet"), nh=50)
there(UDP(sport=4321, dport=53) / Raw(b"a whole address"), WHOLE, MAPPED)
there(TCP(sport=4000, dport=80, flags="S", seq=100))
long = UDP(sport=5002, dport=53) / Raw(b"in two fragments")
inside += [into(0, piece) for piece in pieces(HOST, REMOTE, 64, long)]
outside += [out(1, piece) for piece in pieces(POOL, REMOTE, 63, long)]
json.dump({"events": {"nat66-slowpath": {"sessions-made": 7}}}, open("01-counters.json", "w"), indent=2)
step(1, "e0", "e1")

back(UDP(sport=53, dport=5000) / Raw(b"answer"))
back(ICMPv6EchoReply(id=77, seq=1, data=b"echo"))
back(options / UDP(sport=53, dport=5001) / Raw(b"answer"))
back(Raw(b"an encrypted answer"), nh=50)
back(UDP(sport=53, dport=4321) / Raw(b"answer"), WHOLE, MAPPED)
back(TCP(sport=80, dport=4000, flags="SA", seq=1, ack=101))
step(2, "e1", "e0")

# From outside: a port that is mapped, an address that is mapped, and what nobody may reach.
for dport, local, address, of in [(2222, 22, POOL, SERVER), (8080, 8080, MAPPED, WHOLE)]:
    inside.append(into(1, head(REMOTE, address) / TCP(sport=999, dport=dport, flags="S", seq=5)))
    outside.append(out(0, head(REMOTE, of, 63) / TCP(sport=999, dport=local, flags="S", seq=5)))
inside.append(into(1, head(REMOTE, POOL) / UDP(sport=53, dport=5009) / Raw(b"unasked")))
inside.append(into(1, head(REMOTE, MAPPED) / TCP(sport=999, dport=9, flags="A", seq=5)))
drops = {"nat66-out2in": {"no-translation": 1}, "nat66-slowpath": {"non-syn": 1}}
json.dump({"drops": drops}, open("03-counters.json", "w"), indent=2)
step(3, "e1", "e0")

# From inside to the server by its external address.
syn = {"sport": 6000, "flags": "S", "seq": 5}
inside.append(into(0, head(HOST, POOL) / TCP(dport=2222, **syn)))
outside.append(out(0, head(POOL, SERVER, 63) / TCP(dport=22, **syn)))
json.dump({"events": {"nat66-hairpin": {"hairpinned": 1}}}, open("04-counters.json", "w"), indent=2)
step(4, "e0", "e0")
