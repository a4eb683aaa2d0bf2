#!/usr/bin/python3
"""push dot1q: another customer tag in front, with the priority of the first."""
import sys

sys.path.insert(0, "..")
from tagrewrite import case, q  # noqa: E402

case("dot1q 100 exact-match", "push dot1q 300", [q(100, 3, 1)], [q(300, 3, 1), q(100, 3, 1)])
