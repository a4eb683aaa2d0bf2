#!/usr/bin/python3
"""translate 2-2 from customer tags to a service and a customer tag."""
import sys

sys.path.insert(0, "..")
from tagrewrite import ad, case, q  # noqa: E402

case("dot1q 100 inner-dot1q 200 exact-match", "translate 2-2 dot1ad 300 400", [q(100, 0), q(200, 7)], [ad(300, 0), q(400, 7)])
