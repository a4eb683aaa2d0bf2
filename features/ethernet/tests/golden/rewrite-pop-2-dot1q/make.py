#!/usr/bin/python3
"""pop 2 of two customer tags."""
import sys

sys.path.insert(0, "..")
from tagrewrite import case, q  # noqa: E402

case("dot1q 100 inner-dot1q 200 exact-match", "pop 2", [q(100), q(200)], [])
