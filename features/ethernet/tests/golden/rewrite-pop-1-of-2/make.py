#!/usr/bin/python3
"""pop 1 of two tags: the outer one goes and comes back with the priority of the inner one."""
import sys

sys.path.insert(0, "..")
from tagrewrite import ad, case, q  # noqa: E402

case("dot1ad 100 inner-dot1q 200 exact-match", "pop 1", [ad(100, 6), q(200, 6)], [q(200, 6)])
