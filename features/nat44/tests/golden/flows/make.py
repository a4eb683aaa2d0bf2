#!/usr/bin/python3
"""TCP, UDP with and without checksum, ICMP queries and ESP get the pool's address and come back; a static mapping is reached from outside, nothing else is."""
import json

from scapy.all import ICMP, IP, TCP, UDP, Ether, Raw, wrpcap

HOST, SERVER, WHOLE, REMOTE = "10.0.0.2", "10.0.0.3", "10.0.0.4", "203.0.113.1"
POOL, MAPPED = "192.0.2.1", "192.0.2.7"


def into(n: int, p: IP) -> Ether:
    return Ether(src=f"02:00:00:00:00:0{n}", dst=f"02:fe:00:00:00:0{n}") / p


def out(n: int, p: IP) -> Ether:
    return Ether(src=f"02:fe:00:00:00:0{n}", dst=f"02:00:00:00:00:0{n}") / p


def head(src: str, dst: str, ttl: int = 64, **more) -> IP:
    return IP(src=src, dst=dst, ttl=ttl, id=7, **more)


def there(upper, src: str = HOST, new: str = POOL, **more) -> None:
    """From inside, and what it becomes."""
    inside.append(into(0, head(src, REMOTE, **more) / upper.copy()))
    outside.append(out(1, head(new, REMOTE, 63, **more) / upper.copy()))


def back(upper, dst: str = HOST, old: str = POOL, **more) -> None:
    inside.append(into(1, head(REMOTE, old, **more) / upper.copy()))
    outside.append(out(0, head(REMOTE, dst, 63, **more) / upper.copy()))


def step(number: int, rx: str, tx: str) -> None:
    wrpcap(f"0{number}-in.{rx}.pcap", inside)
    if outside:
        wrpcap(f"0{number}-out.{tx}.pcap", outside)
    inside.clear()
    outside.clear()


inside, outside = [], []
there(UDP(sport=5000, dport=53) / Raw(b"question"))
there(UDP(sport=5001, dport=53, chksum=0) / Raw(b"without checksum"))
there(ICMP(id=77, seq=1) / Raw(b"echo"))
there(ICMP(type=13, id=78, seq=1, ts_ori=5))
there(Raw(b"an encrypted packet"), proto=50)
there(UDP(sport=4321, dport=53) / Raw(b"a whole address"), WHOLE, MAPPED)
syn = TCP(sport=4000, dport=80, flags="S", seq=100)
inside.append(into(0, head(HOST, REMOTE) / syn.copy() ))
outside.append(out(1, head(POOL, REMOTE, 63) / syn.copy()))
large = TCP(sport=4001, dport=80, flags="S", seq=100, options=[("NOP", None), ("MSS", 1460), ("SAckOK", b"")])
small = large.copy()
small.options = [("NOP", None), ("MSS", 1400), ("SAckOK", b"")]
inside.append(into(0, head(HOST, REMOTE) / large))
outside.append(out(1, head(POOL, REMOTE, 63) / small))
made = {"sessions-made": 8}
json.dump({"events": {"nat44-ed-slowpath": made}}, open("01-counters.json", "w"), indent=2)
step(1, "e0", "e1")

back(UDP(sport=53, dport=5000) / Raw(b"answer"))
back(UDP(sport=53, dport=5001, chksum=0) / Raw(b"answer"))
back(ICMP(type=0, id=77, seq=1) / Raw(b"echo"))
back(ICMP(type=14, id=78, seq=1, ts_ori=5))
back(Raw(b"an encrypted answer"), proto=50)
back(UDP(sport=53, dport=4321) / Raw(b"answer"), WHOLE, MAPPED)
back(TCP(sport=80, dport=4000, flags="SA", seq=1, ack=101))
step(2, "e1", "e0")

# From outside: a port that is mapped, an address that is mapped, and what nobody may reach.
more = TCP(sport=999, flags="S", seq=5)
for dport, local, address, of in [(2222, 22, POOL, SERVER), (8080, 8080, MAPPED, WHOLE)]:
    inside.append(into(1, head(REMOTE, address) / TCP(sport=999, dport=dport, flags="S", seq=5)))
    outside.append(out(0, head(REMOTE, of, 63) / TCP(sport=999, dport=local, flags="S", seq=5)))
inside.append(into(1, head(REMOTE, POOL) / UDP(sport=53, dport=5002) / Raw(b"unasked")))
inside.append(into(1, head("203.0.113.2", POOL) / UDP(sport=53, dport=5000) / Raw(b"another host")))
inside.append(into(1, head(REMOTE, POOL) / TCP(sport=998, dport=2222, flags="A", seq=5)))
inside.append(into(1, head(REMOTE, POOL) / ICMP(id=5, seq=1)))
inside.append(into(1, head(REMOTE, "10.0.0.2") / UDP(sport=53, dport=5000)))
drops = {"nat44-ed-out2in": {"no-translation": 4}, "nat44-ed-slowpath": {"non-syn": 1}}
json.dump({"drops": drops}, open("03-counters.json", "w"), indent=2)
step(3, "e1", "e0")

# Answers of the servers.
for sport, local, address, of in [(22, SERVER, POOL, 2222), (8080, WHOLE, MAPPED, 8080)]:
    inside.append(into(0, head(local, REMOTE) / TCP(sport=sport, dport=999, flags="SA", seq=9, ack=6)))
    outside.append(out(1, head(address, REMOTE, 63) / TCP(sport=of, dport=999, flags="SA", seq=9, ack=6)))
step(4, "e0", "e1")
