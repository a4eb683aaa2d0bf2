#!/usr/bin/python3
"""pop 2 of three tags: the third stays."""
import sys

sys.path.insert(0, "..")
from tagrewrite import case, q  # noqa: E402

case("dot1q 100 inner-dot1q 200", "pop 2", [q(100, 2), q(200, 2), q(300, 2)], [q(300, 2)])
