#!/usr/bin/python3
"""translate 1-1 of the outer of two tags; the inner one is payload."""
import sys

sys.path.insert(0, "..")
from tagrewrite import ad, case, q  # noqa: E402

case("dot1ad 100 inner-dot1q 200 exact-match", "translate 1-1 dot1ad 101", [ad(100, 1), q(200, 6)], [ad(101, 1), q(200, 6)])
