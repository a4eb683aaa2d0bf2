#!/usr/bin/python3
"""What is for the router itself: pings are answered, ports and protocols nobody has are refused."""
import json

from scapy.all import ICMP, IP, TCP, UDP, Ether, IPOption_LSRR, IPOption_RR, Raw, wrpcap

E0, H0 = "02:fe:00:00:00:00", "02:00:00:00:00:a0"
eth, reply_eth = Ether(src=H0, dst=E0), Ether(src=E0, dst=H0)
me, other = "10.0.0.1", "10.0.1.1"
ask = lambda dst, **f: IP(src="10.0.0.2", dst=dst, **{"id": 7, **f})
answer = lambda src, **f: IP(src=src, dst="10.0.0.2", ttl=64, **{"id": 7, **f})
pings = [
    (me, {}, b""),
    (me, {"ttl": 1}, b"odd"),
    (other, {"ttl": 255, "tos": 4}, bytes(range(256)) * 4),
    (me, {"options": [IPOption_RR(length=7, routers=["0.0.0.0"])]}, b"options"),
]
echo = lambda kind, data: ICMP(type=kind, id=0xFFFF, seq=0xFFFF) / Raw(data)
wrpcap("01-in.e0.pcap", [eth / ask(dst, **f) / echo(8, data) for dst, f, data in pings])
keep = lambda f: {k: v for k, v in f.items() if k != "ttl"}
wrpcap("01-out.e0.pcap", [reply_eth / answer(dst, **keep(f)) / echo(0, data) for dst, f, data in pings])

refused = [
    (3, ask(me) / UDP(sport=1, dport=9999) / Raw(b"closed")),
    (2, ask(me, proto=200) / Raw(b"what is this")),
    (3, ask(me) / UDP(sport=1, dport=9999, chksum=0) / Raw(b"no checksum")),
]
error = lambda code, packet: (
    IP(src=me, dst="10.0.0.2", ttl=64, tos=0xC0, id=0) / ICMP(type=3, code=code) / Raw(bytes(packet))
)
wrpcap("02-in.e0.pcap", [eth / packet for _, packet in refused])
wrpcap("02-out.e0.pcap", [reply_eth / error(code, packet) for code, packet in refused])
events = {"ip4-icmp-error": {"port-unreachable": 2, "protocol-unreachable": 1}}
drops = {"ip4-local": {"udp-port-closed": 2, "protocol-unknown": 1}}
json.dump({"drops": drops, "events": events}, open("02-counters.json", "w"), indent=2)

wrong = {
    ("ip4-local", "fragment"): ask(me, flags="MF") / ICMP(type=8) / Raw(b"x" * 16),
    ("ip4-local", "source-is-ours"): IP(src=other, dst=me) / ICMP(type=8),
    ("ip4-local", "source-route"): ask(me, options=[IPOption_LSRR(routers=["10.9.9.9"])]) / ICMP(type=8),
    ("ip4-local", "udp-bad-length"): ask(me) / UDP(sport=1, dport=2, len=7) / Raw(b"x"),
    ("ip4-local", "udp-bad-checksum"): ask(me) / UDP(sport=1, dport=2, chksum=1) / Raw(b"x"),
    ("ip4-local", "tcp-bad-length"): ask(me) / TCP(dataofs=4),
    ("ip4-local", "tcp-bad-checksum"): ask(me) / TCP(chksum=1),
    ("ip4-icmp-input", "truncated"): ask(me, proto=1) / Raw(b"1234567"),
    ("ip4-icmp-input", "bad-checksum"): ask(me) / ICMP(type=8, chksum=1),
    ("ip4-icmp-input", "unknown-type"): ask(me) / ICMP(type=13),
    ("ip4-icmp-input", "unexpected-reply"): ask(me) / ICMP(type=0),
}
wrpcap("03-in.e0.pcap", [eth / packet for packet in wrong.values()])
drops = {}
for node, name in wrong:
    drops.setdefault(node, {})[name] = 1
json.dump({"drops": drops}, open("03-counters.json", "w"), indent=2)

wrpcap("04-in.e0.pcap", [eth / ask(me) / TCP(sport=1, dport=179, flags="S")])
punt = {"events": {"ip4-punt": {"punted": 1}}, "interfaces": {"e0": {"punt": 1}}}
json.dump(punt, open("04-counters.json", "w"), indent=2)
