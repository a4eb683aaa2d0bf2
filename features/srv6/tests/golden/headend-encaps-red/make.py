#!/usr/bin/python3
"""H.Encaps.Red: the first segment stands in the destination alone, and one segment needs no SRH (RFC 8986 §5.2). The
more specific prefix goes by its own policy."""

import sys

sys.path.insert(0, "..")
from headend import *

long = IPv6(**HOSTS6) / UDP(sport=1, dport=2) / Raw(b"three segments")
short = IPv6(src=HOSTS6["src"], dst="2001:db8:b:1::2") / UDP(sport=1, dport=2) / Raw(b"one")
four = IP(**HOSTS4) / UDP(sport=1, dport=2) / Raw(b"one")
wrpcap("01-in.e0.pcap", comes(long, short))
wrpcap("01-out.e1.pcap", leaves(around(hop(long), [S1, S2, S3], reduced=True), around(hop(short), [S1], reduced=True)))
wrpcap("02-in.e0.pcap", comes(four))
wrpcap("02-out.e1.pcap", leaves(around(hop(four), [S1], reduced=True)))
