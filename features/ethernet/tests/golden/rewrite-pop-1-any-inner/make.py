#!/usr/bin/python3
"""pop 1 where any second tag may follow."""
import sys

sys.path.insert(0, "..")
from tagrewrite import case, q  # noqa: E402

case("dot1q 100 inner-dot1q any", "pop 1", [q(100, 1), q(999, 1)], [q(999, 1)])
