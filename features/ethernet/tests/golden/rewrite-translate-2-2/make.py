#!/usr/bin/python3
"""translate 2-2: each tag keeps its own priority."""
import sys

sys.path.insert(0, "..")
from tagrewrite import case, q  # noqa: E402

case("dot1q 100 inner-dot1q 200 exact-match", "translate 2-2 dot1q 300 400", [q(100, 5), q(200, 1, 1)], [q(300, 5), q(400, 1, 1)])
