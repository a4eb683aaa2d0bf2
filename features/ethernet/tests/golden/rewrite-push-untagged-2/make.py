#!/usr/bin/python3
"""push of two tags on untagged frames."""
import sys

sys.path.insert(0, "..")
from tagrewrite import ad, case, q  # noqa: E402

case("untagged", "push dot1ad 1 2", [], [ad(1), q(2)])
