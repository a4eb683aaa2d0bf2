#!/usr/bin/python3
"""push on a sub-interface for untagged frames: what comes gets a tag, what leaves loses it."""
import sys

sys.path.insert(0, "..")
from tagrewrite import case, q  # noqa: E402

case("untagged", "push dot1q 4094", [], [q(4094)])
