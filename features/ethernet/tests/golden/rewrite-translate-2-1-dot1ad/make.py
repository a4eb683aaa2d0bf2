#!/usr/bin/python3
"""translate 2-1 to a service tag."""
import sys

sys.path.insert(0, "..")
from tagrewrite import ad, case, q  # noqa: E402

case("dot1q 100 inner-dot1q 200 exact-match", "translate 2-1 dot1ad 300", [q(100, 2), q(200, 2)], [ad(300, 2)])
