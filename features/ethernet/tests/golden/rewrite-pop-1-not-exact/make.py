#!/usr/bin/python3
"""pop 1 without exact-match: what follows the named tag stays, two tags deep."""
import sys

sys.path.insert(0, "..")
from tagrewrite import case, q  # noqa: E402

case("dot1q 100", "pop 1", [q(100, 1), q(7, 1), q(8)], [q(7, 1), q(8)])
