#!/usr/bin/python3
"""push on a whole port that is cross-connected."""
import sys

sys.path.insert(0, "..")
from tagrewrite import case, q  # noqa: E402

case("", "push dot1q 10", [], [q(10)])
