#!/usr/bin/python3
"""Without a rewrite a cross-connected sub-interface passes frames on with their tags."""
import sys

sys.path.insert(0, "..")
from tagrewrite import case, q  # noqa: E402

case("dot1q 100 exact-match", "disable", [q(100, 3, 1)], [q(100, 3, 1)])
