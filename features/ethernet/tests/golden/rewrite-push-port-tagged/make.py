#!/usr/bin/python3
"""push on a whole port, of frames that are tagged already, three deep then."""
import sys

sys.path.insert(0, "..")
from tagrewrite import ad, case, q  # noqa: E402

case("", "push dot1ad 10 11", [q(5, 4)], [ad(10, 4), q(11, 4), q(5, 4)])
