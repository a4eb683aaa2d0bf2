#!/usr/bin/python3
"""What belongs to one link stays there, whatever the routes say (RFC 5771 §4, RFC 4291 §2.7, RFC 3927 §2.7)."""
import json

from scapy.all import IP, UDP, Ether, IPv6, Raw, wrpcap

H = "02:00:00:00:00:aa"
four = lambda src, dst: Ether(src=H, dst="01:00:5e:" + ":".join(f"{int(b) & m:02x}" for b, m in zip(dst.split(".")[1:], (127, 255, 255)))) / IP(src=src, dst=dst, ttl=8) / UDP() / Raw(b"x" * 20)
six = lambda src, dst, low: Ether(src=H, dst="33:33:00:00:00:" + low) / IPv6(src=src, dst=dst, hlim=8) / UDP() / Raw(b"x" * 20)
wrpcap(
    "01-in.e0.pcap",
    [
        four("10.0.0.5", "224.0.0.5"),
        four("10.0.0.5", "224.0.0.255"),
        four("169.254.7.7", "232.1.1.1"),
        six("2001:db8::5", "ff02::5", "05"),
        six("2001:db8::5", "ff12::5", "05"),
        six("2001:db8::5", "ff01::5", "05"),
        six("fe80::5", "ff0e::5", "05"),
    ],
)
drops = {
    "ip4-local": {"group-not-joined": 2},
    "ip4-replicate": {"not-forwardable": 1},
    "ip6-local": {"group-not-joined": 2},
    "ip6-input": {"destination-interface-local": 1},
    "ip6-replicate": {"not-forwardable": 1},
}
json.dump({"drops": drops}, open("01-counters.json", "w"), indent=2)
good = [IP(src="10.0.0.5", dst="224.0.1.1", ttl=t) / UDP() / Raw(b"x" * 20) for t in (8, 7)]
good6 = [IPv6(src="2001:db8::5", dst="ff13::5", hlim=t) / UDP() / Raw(b"x" * 20) for t in (8, 7)]
wrpcap("02-in.e0.pcap", [Ether(src=H, dst="01:00:5e:00:01:01") / good[0], Ether(src=H, dst="33:33:00:00:00:05") / good6[0]])
E1 = "02:fe:00:00:00:01"
wrpcap("02-out.e1.pcap", [Ether(src=E1, dst="01:00:5e:00:01:01") / good[1], Ether(src=E1, dst="33:33:00:00:00:05") / good6[1]])
