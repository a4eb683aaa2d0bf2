#!/usr/bin/python3
"""translate 1-1: another VLAN, the same priority and drop eligibility."""
import sys

sys.path.insert(0, "..")
from tagrewrite import case, q  # noqa: E402

case("dot1q 100 exact-match", "translate 1-1 dot1q 200", [q(100, 5, 1)], [q(200, 5, 1)])
