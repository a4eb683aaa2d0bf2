#!/usr/bin/python3
"""translate 2-1: the priority of the outer tag stays, that of the inner one is lost."""
import sys

sys.path.insert(0, "..")
from tagrewrite import ad, case, q  # noqa: E402

case("dot1ad 100 inner-dot1q 200 exact-match", "translate 2-1 dot1q 300", [ad(100, 5), q(200, 1)], [q(300, 5)], [ad(100, 5), q(200, 5)])
