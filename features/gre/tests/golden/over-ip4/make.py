#!/usr/bin/python3
"""IPv4 and IPv6 packets into a tunnel over IPv4 and out of it: TTL, DSCP and ECN go outside, the hop is counted inside."""

import sys

sys.path.insert(0, "..")
from tunnel import *

both_ways(gre, OUT4, IN4, "gre0")
