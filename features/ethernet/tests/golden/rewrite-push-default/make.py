#!/usr/bin/python3
"""push on the sub-interface that takes what no other takes."""
import sys

sys.path.insert(0, "..")
from tagrewrite import case, q  # noqa: E402

case("default", "push dot1q 10", [q(77, 1)], [q(10, 1), q(77, 1)])
