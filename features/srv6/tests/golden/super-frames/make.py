#!/usr/bin/python3
"""Super-frames meet policies and SIDs whole. Behind an outer header they are cut, for a device of Linux knows no tunnels; with segments alone they leave whole."""

import sys

sys.path.insert(0, "..")
from headend import label
from srv6 import into, out

sys.path.insert(0, "../../../../../testkit/golden")
from scapy.all import TCP, IPv6, IPv6ExtHdrSegmentRouting, Raw, wrpcap
from super_frames import PAYLOAD, segments, whole, write

HOST = "2001:db8:0::2"
tcp = TCP(sport=1, dport=2, seq=7, flags="PA") / Raw(PAYLOAD)
packet = lambda to, hops: IPv6(src=HOST, dst=to, hlim=hops) / tcp
path = lambda left, *addresses: IPv6ExtHdrSegmentRouting(addresses=list(reversed(addresses)), segleft=left)

# An outer header with two segments.
write("01-in.e0.pcap", [whole(into(packet("2001:db8:e::9", 64)))])
outer = IPv6(src="fc00:0:1::ffff", dst="fc00:0:2::1", hlim=64, fl=label(packet("2001:db8:e::9", 64))) / path(1, "fc00:0:2::1", "fc00:0:2::2")
cut = segments(out(1, outer / packet("2001:db8:e::9", 63)))
wrpcap("01-out.e1.pcap", cut)

# A segment inserted: the checksum is that of the last one's address.
write("02-in.e0.pcap", [whole(into(packet("2001:db8:f::9", 64)))])
on_path = IPv6(src=HOST, dst="fc00:0:2::1", hlim=63) / path(1, "fc00:0:2::1", "2001:db8:f::9") / tcp
write("02-out.e1.pcap", [whole(out(1, on_path), final="2001:db8:f::9")])

# End, and End.DT6.
came = lambda dst, left, hops: IPv6(src=HOST, dst=dst, hlim=hops) / path(left, "fc00:0:1::1", "fc00:0:9::9") / tcp
write("03-in.e0.pcap", [whole(into(came("fc00:0:1::1", 1, 64)), final="fc00:0:9::9")])
write("03-out.e1.pcap", [whole(out(1, came("fc00:0:9::9", 0, 63)), final="fc00:0:9::9")])
tunnelled = IPv6(src=HOST, dst="fc00:0:1::6", hlim=64) / packet("fc00:0:9::9", 64)
write("04-in.e0.pcap", [whole(into(tunnelled))])
write("04-out.e1.pcap", [whole(out(1, packet("fc00:0:9::9", 63)))])
