#!/usr/bin/python3
"""push dot1q of two tags: both are customer tags."""
import sys

sys.path.insert(0, "..")
from tagrewrite import case, q  # noqa: E402

case("dot1q 100 exact-match", "push dot1q 300 301", [q(100, 2)], [q(300, 2), q(301, 2), q(100, 2)])
