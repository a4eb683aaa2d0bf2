#!/usr/bin/python3
"""A host inside reaches another one by its outside address; both see an outside address (RFC 4787 REQ-9)."""
import json

from scapy.all import ICMP, IP, TCP, Ether, Raw, raw, wrpcap

HOST, SERVER, POOL = "10.0.0.2", "10.0.0.3", "192.0.2.1"


def into(p) -> Ether:
    return Ether(src="02:00:00:00:00:00", dst="02:fe:00:00:00:00") / p


def out(p) -> Ether:
    return Ether(src="02:fe:00:00:00:00", dst="02:00:00:00:00:00") / p


def head(src: str, dst: str, ttl: int = 64) -> IP:
    return IP(src=src, dst=dst, ttl=ttl, id=7)


syn = lambda dport: TCP(sport=6000, dport=dport, flags="S", seq=5)
wrpcap("01-in.e0.pcap", [into(head(HOST, POOL) / syn(2222))])
wrpcap("01-out.e0.pcap", [out(head(POOL, SERVER, 63) / syn(22))])
json.dump({"events": {"nat44-ed-slowpath": {"hairpinned": 1}}}, open("01-counters.json", "w"), indent=2)
answer = lambda sport: TCP(sport=sport, dport=6000, flags="SA", seq=9, ack=6)
wrpcap("02-in.e0.pcap", [into(head(SERVER, POOL) / answer(22))])
wrpcap("02-out.e0.pcap", [out(head(POOL, HOST, 63) / answer(2222))])
# An error of the server.
error = ICMP(type=3, code=13)
wrpcap("03-in.e0.pcap", [into(head(SERVER, POOL) / error / Raw(raw(head(POOL, SERVER, 63) / syn(22))))])
wrpcap("03-out.e0.pcap", [out(head(POOL, HOST, 63) / error / Raw(raw(head(HOST, POOL, 63) / syn(2222))))])
