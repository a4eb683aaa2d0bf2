#!/usr/bin/python3
"""pop 1 of a customer tag; its priority is lost with it."""
import sys

sys.path.insert(0, "..")
from tagrewrite import case, q  # noqa: E402

case("dot1q 100 exact-match", "pop 1", [q(100, 5, 1)], [], [q(100)])
