#!/usr/bin/python3
"""32,768 hosts share an address, so that each has one port: 1024 and the host's number. A second session of a host
is refused with an ICMP error. What comes from elsewhere than the session's far end dies, and so does what has no ports;
what stays inside is left alone."""
import json

from scapy.all import ARP, GRE, ICMP, IP, TCP, UDP, Ether, Raw, fragment, raw, wrpcap

OUTSIDE, REMOTE, OTHER = "192.0.2.1", "203.0.113.1", "203.0.113.9"
host = lambda number: f"10.0.0.{number}"


def into(n: int, p) -> Ether:
    return Ether(src=f"02:00:00:00:00:0{n}", dst=f"02:fe:00:00:00:0{n}") / p


def out(n: int, p) -> Ether:
    return Ether(src=f"02:fe:00:00:00:0{n}", dst=f"02:00:00:00:00:0{n}") / p


def head(src: str, dst: str, ttl: int = 64, **more) -> IP:
    return IP(src=src, dst=dst, ttl=ttl, id=7, **more)


udp = lambda a, b: UDP(sport=a, dport=b) / Raw(b"question")
bare = UDP(sport=5000, dport=53, chksum=0) / Raw(b"without checksum")
bare_out = UDP(sport=1029, dport=53, chksum=0) / Raw(b"without checksum")
tcp = lambda a, b, flags="S": TCP(sport=a, dport=b, flags=flags, seq=100)
echo = lambda number, kind=8: ICMP(type=kind, id=number, seq=1) / Raw(b"echo")

ways = [(2, udp(5000, 53), udp(1026, 53)), (3, tcp(4000, 80), tcp(1027, 80)), (4, echo(77), echo(1028)),
        (5, bare, bare_out)]
wrpcap("01-in.e0.pcap", [into(0, head(host(n), REMOTE) / upper) for n, upper, _ in ways])
wrpcap("01-out.e1.pcap", [out(1, head(OUTSIDE, REMOTE, 63) / upper) for _, _, upper in ways])
json.dump({"events": {"det44-in2out": {"sessions-made": 4}}}, open("01-counters.json", "w"), indent=2)

# Answers.
back = [(2, udp(53, 1026), udp(53, 5000)), (3, tcp(80, 1027, "SA"), tcp(80, 4000, "SA")), (4, echo(1028, 0), echo(77, 0))]
wrpcap("02-in.e1.pcap", [into(1, head(REMOTE, OUTSIDE) / upper) for _, upper, _ in back])
wrpcap("02-out.e0.pcap", [out(0, head(REMOTE, host(n), 63) / upper) for n, _, upper in back])

# The host's port is taken.
second = head(host(2), REMOTE) / udp(5001, 53)
unreachable = IP(src="10.0.0.1", dst=host(2), ttl=64, id=0, tos=0xC0) / ICMP(type=3, code=1) / Raw(raw(second))
wrpcap("03-in.e0.pcap", [into(0, second)])
wrpcap("03-out.e0.pcap", [out(0, unreachable)])
json.dump({"events": {"det44-in2out": {"out-of-ports": 1}}}, open("03-counters.json", "w"), indent=2)

# From others, to nobody's port, without ports.
wrong = [head(OTHER, OUTSIDE) / udp(53, 1026), head(REMOTE, OUTSIDE) / udp(54, 1026), head(REMOTE, OUTSIDE) / udp(53, 900),
         head(REMOTE, OUTSIDE) / tcp(80, 1026), head(REMOTE, OUTSIDE) / GRE(), head(REMOTE, OUTSIDE) / echo(1028, 8)]
wrpcap("04-in.e1.pcap", [into(1, packet) for packet in wrong])
inside = [head(host(2), REMOTE) / GRE(), head(host(6), REMOTE) / tcp(1, 2, "A"), head(host(6), REMOTE) / echo(5, 0),
          head(host(6), REMOTE) / ICMP(type=5)]
wrpcap("04-in.e0.pcap", [into(0, packet) for packet in inside])
counted = {"det44-out2in": {"no-translation": 4, "unsupported-protocol": 1},
           "det44-in2out": {"unsupported-protocol": 1, "non-syn": 1, "bad-icmp-type": 2}}

# An echo request that comes to the outside end is one of the session all the same: queries have no direction.
wrpcap("04-out.e0.pcap", [out(0, head(REMOTE, host(4), 63) / echo(77, 8))])
json.dump({"drops": counted}, open("04-counters.json", "w"), indent=2)

# The router answers for the address; hosts talk to one another as ever; fragments follow the first one.
ask = Ether(src="02:00:00:00:00:01", dst="ff:ff:ff:ff:ff:ff") / ARP(hwsrc="02:00:00:00:00:01", psrc="198.51.100.2", pdst=OUTSIDE)
says = Ether(src="02:fe:00:00:00:01", dst="02:00:00:00:00:01") / ARP(
    op=2, hwsrc="02:fe:00:00:00:01", psrc=OUTSIDE, hwdst="02:00:00:00:00:01", pdst="198.51.100.2")
wrpcap("05-in.e1.pcap", [ask])
wrpcap("05-out.e1.pcap", [says])
wrpcap("05-in.e0.pcap", [into(0, head(host(2), host(3)) / udp(1, 2))])
wrpcap("05-out.e0.pcap", [out(0, head(host(2), host(3), 63) / udp(1, 2))])
load = Raw(bytes(range(200)) * 5)
long = lambda src, sport, ttl: [p for p in fragment(head(src, REMOTE, ttl) / UDP(sport=sport, dport=53) / load, 400)]
wrpcap("06-in.e0.pcap", [into(0, packet) for packet in long(host(2), 5000, 64)])
sent = long(OUTSIDE, 1026, 63)
wrpcap("06-out.e1.pcap", [out(1, packet) for packet in sent])
