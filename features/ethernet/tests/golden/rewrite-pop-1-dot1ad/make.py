#!/usr/bin/python3
"""pop 1 of a service tag, which is put back as one."""
import sys

sys.path.insert(0, "..")
from tagrewrite import ad, case  # noqa: E402

case("dot1ad 100 exact-match", "pop 1", [ad(100)], [])
