#!/usr/bin/python3
"""End with every combination of PSP (1), USP (2) and USD (4): the SID's number says which."""
import sys

sys.path.insert(0, "..")
from srv6 import *

every_flavor(1)
