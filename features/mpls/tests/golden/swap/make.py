#!/usr/bin/python3
"""Labels swapped for one and for several, and labels taken off in front of others."""

import sys

sys.path.insert(0, "..")
from mpls_case import *

ip = IP(ttl=9, **HOSTS4) / UDP() / Raw(b"swap")

# One label for another: TTL one less, class and bottom bit as they were; what is behind is as it was.
came = [labels((16, 64, 5)) / ip, labels((16, 2), 500) / ip, labels(16, 7, 99) / ip]
went = [labels((17, 63, 5)) / ip, labels((17, 1), 500) / ip, labels((17, 63), 7, 99) / ip]
wrpcap("01-in.e0.pcap", comes(*came))
wrpcap("01-out.e1.pcap", leaves(*went))

# Several labels in place of one: the last of them stands in its place. Others have a TTL and a class of their own
# (pipe) or those of the label (uniform).
came = [labels((18, 40, 3)) / ip, labels((19, 40, 3)) / ip, labels((20, 40, 3)) / ip]
went = [labels((100, 255), (200, 39, 3)) / ip, labels((100, 39, 3), (200, 39, 3)) / ip]
went += [labels(*[(1000 + n, 255) for n in range(5)], (1005, 39, 3)) / ip]
wrpcap("02-in.e0.pcap", comes(*came))
wrpcap("02-out.e1.pcap", leaves(*went))

# A label in front of others goes: the next one is as it was (pipe), or has its TTL and class (uniform).
came = [labels((21, 40, 3), (500, 60, 1)) / ip, labels((22, 40, 3), (500, 60, 1)) / ip, labels((22, 40, 3), (500, 7, 1)) / ip]
went = [labels((500, 60, 1)) / ip, labels((500, 39, 3)) / ip, labels((500, 7, 3)) / ip]
wrpcap("03-in.e0.pcap", comes(*came))
wrpcap("03-out.e1.pcap", leaves(*went))

# The next label is looked up; explicit null in front of others is no more than that.
came = [labels(23, (16, 64, 2)) / ip, labels(0, (16, 64, 2)) / ip, labels(24) / ip]
went = [labels((17, 63, 2)) / ip, labels((17, 63, 2)) / ip, labels((0, 63)) / ip]
wrpcap("04-in.e0.pcap", comes(*came))
wrpcap("04-out.e1.pcap", leaves(*went))
