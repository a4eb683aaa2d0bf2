#!/usr/bin/python3
"""With virtual reassembly fragments have the ports of the first, whatever the order."""
from scapy.all import UDP, Ether, IP, IPv6, IPv6ExtHdrFragment, Raw, wrpcap

head = lambda ttl, **more: IP(src="198.51.100.1", dst="203.0.113.1", ttl=ttl, **more)
udp = lambda port: UDP(sport=1, dport=port, len=40, chksum=0) / Raw(b"x" * 16)
first = lambda port: lambda n: head(n, flags="MF", id=port) / udp(port)
later = lambda port: lambda n: head(n, frag=3, id=port, proto=17) / Raw(b"y" * 16)
head6 = lambda n: IPv6(src="2001:db8:a::1", dst="2001:db8:f::1", hlim=n)
part6 = lambda port, **more: IPv6ExtHdrFragment(id=port, nh=17, **more)
first6 = lambda port: lambda n: head6(n) / part6(port, m=1) / udp(port)
later6 = lambda port: lambda n: head6(n) / part6(port, offset=3) / Raw(b"y" * 16)
into = lambda p: Ether(src="02:00:00:00:00:00", dst="02:fe:00:00:00:00") / p(64)
out = lambda p: Ether(src="02:fe:00:00:00:01", dst="02:00:00:00:00:01") / p(63)
came = [later(7), first(7), first(8), later(8), first6(7), later6(7), later6(8), first6(8)]
wrpcap("01-in.e0.pcap", [into(p) for p in came])
wrpcap("01-out.e1.pcap", [out(p) for p in [first(7), later(7), first6(7), later6(7)]])
