#!/usr/bin/python3
"""Questions for addresses that the domain knows are answered for their owner, and not flooded."""
import json

from scapy.all import ARP, ICMPv6ND_NA, ICMPv6ND_NS, Ether, ICMPv6NDOptDstLLAddr, ICMPv6NDOptSrcLLAddr, IPv6, wrpcap

A, OWNER, BCAST = "02:00:00:00:00:0a", "02:00:00:00:00:05", "ff:ff:ff:ff:ff:ff"
GROUP = "33:33:ff:00:00:05"
ask = lambda ip, src=A, psrc="10.0.0.9": Ether(src=src, dst=BCAST) / ARP(op=1, hwsrc=src, psrc=psrc, pdst=ip)
solicit = (
    Ether(src=A, dst=GROUP)
    / IPv6(src="2001:db8::9", dst="ff02::1:ff00:5", hlim=255)
    / ICMPv6ND_NS(tgt="2001:db8::5")
    / ICMPv6NDOptSrcLLAddr(lladdr=A)
)
wrpcap("01-in.e0.pcap", [ask("10.0.0.5"), solicit])
answer = Ether(src=OWNER, dst=A) / ARP(op=2, hwsrc=OWNER, psrc="10.0.0.5", hwdst=A, pdst="10.0.0.9")
advertise = (
    Ether(src=OWNER, dst=A)
    / IPv6(src="2001:db8::5", dst="2001:db8::9", hlim=255)
    / ICMPv6ND_NA(tgt="2001:db8::5", R=0, S=1, O=1)
    / ICMPv6NDOptDstLLAddr(lladdr=OWNER)
)
wrpcap("01-out.e0.pcap", [answer, advertise])
events = {"arp-term-l2bd": {"arp-replied": 1, "nd-replied": 1}}
json.dump({"events": events}, open("01-counters.json", "w"), indent=2)

# Others are asked for aloud: an unknown address, the owner's own probe, an announcement, a wrong checksum.
bad = bytearray(bytes(solicit))
bad[56] ^= 0xFF
aloud = [ask("10.0.0.77"), ask("10.0.0.5", src=OWNER, psrc="0.0.0.0"), ask("10.0.0.5", psrc="10.0.0.5"), Ether(bytes(bad))]
wrpcap("02-in.e0.pcap", aloud)
wrpcap("02-out.e1.pcap", aloud)
wrpcap("02-out.e2.pcap", aloud)
json.dump({"events": {"arp-term-l2bd": {"not-known": 2}}}, open("02-counters.json", "w"), indent=2)

# Who probes whether an address of somebody else is free hears that it is not (RFC 5227, RFC 4862).
probe = Ether(src=A, dst=GROUP) / IPv6(src="::", dst="ff02::1:ff00:5", hlim=255) / ICMPv6ND_NS(tgt="2001:db8::5")
wrpcap("03-in.e1.pcap", [ask("10.0.0.5", psrc="0.0.0.0"), probe])
taken = (
    Ether(src=OWNER, dst="33:33:00:00:00:01")
    / IPv6(src="2001:db8::5", dst="ff02::1", hlim=255)
    / ICMPv6ND_NA(tgt="2001:db8::5", R=0, S=0, O=1)
    / ICMPv6NDOptDstLLAddr(lladdr=OWNER)
)
wrpcap("03-out.e1.pcap", [Ether(src=OWNER, dst=A) / ARP(op=2, hwsrc=OWNER, psrc="10.0.0.5", hwdst=A, pdst="0.0.0.0"), taken])
