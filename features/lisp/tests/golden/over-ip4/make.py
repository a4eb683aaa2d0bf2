#!/usr/bin/python3
"""Packets of both families to a locator of IPv4 and from it, in LISP-GPE; what comes in plain LISP is received, too."""

import sys

sys.path.insert(0, "..")
from lisp import *

both_ways(OUT4, IN4)
