#!/usr/bin/python3
"""translate 1-1 from a customer to a service tag."""
import sys

sys.path.insert(0, "..")
from tagrewrite import ad, case, q  # noqa: E402

case("dot1q 100 exact-match", "translate 1-1 dot1ad 200", [q(100, 3)], [ad(200, 3)])
