#!/usr/bin/python3
"""push dot1ad: a service tag in front, as a provider's edge does (IEEE 802.1ad)."""
import sys

sys.path.insert(0, "..")
from tagrewrite import ad, case, q  # noqa: E402

case("dot1q 100 exact-match", "push dot1ad 300", [q(100, 7)], [ad(300, 7), q(100, 7)])
