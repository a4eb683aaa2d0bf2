#!/usr/bin/python3
"""pop 2 of a service and a customer tag."""
import sys

sys.path.insert(0, "..")
from tagrewrite import ad, case, q  # noqa: E402

case("dot1ad 100 inner-dot1q 200 exact-match", "pop 2", [ad(100), q(200)], [])
