#!/usr/bin/python3
"""translate 1-2 to a service and a customer tag."""
import sys

sys.path.insert(0, "..")
from tagrewrite import ad, case, q  # noqa: E402

case("dot1q 100 exact-match", "translate 1-2 dot1ad 200 300", [q(100, 4, 1)], [ad(200, 4, 1), q(300, 4, 1)])
