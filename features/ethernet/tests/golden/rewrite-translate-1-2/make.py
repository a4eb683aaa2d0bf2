#!/usr/bin/python3
"""translate 1-2: two tags with the priority of the one."""
import sys

sys.path.insert(0, "..")
from tagrewrite import case, q  # noqa: E402

case("dot1q 100 exact-match", "translate 1-2 dot1q 200 300", [q(100, 4)], [q(200, 4), q(300, 4)])
