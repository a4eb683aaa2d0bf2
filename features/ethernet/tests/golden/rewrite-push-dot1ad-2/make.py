#!/usr/bin/python3
"""push dot1ad of two tags: the inner one is a customer tag."""
import sys

sys.path.insert(0, "..")
from tagrewrite import ad, case, q  # noqa: E402

case("dot1q 100 exact-match", "push dot1ad 300 301", [q(100)], [ad(300), q(301), q(100)])
