#!/usr/bin/python3
"""IPv4 and IPv6 packets into a tunnel over IPv6 and out of it: TTL, DSCP and ECN go outside, the hop is counted inside."""

import sys

sys.path.insert(0, "../../../../gre/tests/golden")
from tunnel import *

both_ways(ipip, OUT6, IN6, "ipip0")
