#!/usr/bin/python3
"""IPv4 and IPv6 packets into a tunnel over IPv6 and out of it: TTL, DSCP and ECN go outside, the hop is counted inside."""

import sys

sys.path.insert(0, "..")
from tunnel import *

both_ways(gre, OUT6, IN6, "gre0")
