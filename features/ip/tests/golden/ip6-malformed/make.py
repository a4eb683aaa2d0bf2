#!/usr/bin/python3
"""Every lie of an IPv6 header is a death of its own."""
import json

from scapy.all import UDP, Ether, IPv6, Raw, wrpcap

E0, H0 = "02:fe:00:00:00:00", "02:00:00:00:00:a0"
eth = Ether(src=H0, dst=E0, type=0x86DD)
good = lambda **f: IPv6(**{"src": "2001:db8::2", "dst": "2001:db8:1::2", **f}) / UDP(sport=1, dport=2) / Raw(b"x" * 20)
whole = bytes(good())
cases = {
    "truncated": Raw(whole[:39]),
    "bad-version": Raw(b"\x45" + whole[1:]),
    "length-beyond-packet": good(plen=200),
    "source-multicast": good(src="ff02::1"),
    "source-loopback": good(src="::1"),
    "source-v4-mapped": good(src="::ffff:10.0.0.1"),
    "source-unspecified": good(src="::"),
    "destination-unspecified": good(dst="::"),
    "destination-loopback": good(dst="::1"),
    "destination-v4-mapped": good(dst="::ffff:10.0.0.1"),
    "destination-interface-local": good(dst="ff01::1"),
}
group = Ether(src=H0, dst="33:33:00:00:00:01", type=0x86DD) / good()
wrpcap("01-in.e0.pcap", [eth / case for case in cases.values()] + [group])
drops = {"ip6-input": {name: 1 for name in [*cases, "unicast-in-l2-group"]}}
json.dump({"drops": drops}, open("01-counters.json", "w"), indent=2)
