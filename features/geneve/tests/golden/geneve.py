"""What a Geneve tunnel makes of frames and packets, for the make.py of its cases."""

import sys

sys.path.insert(0, "../../../../vxlan/tests/golden")
from scapy.contrib.geneve import GENEVE, GeneveOptions
from vxlan import *

PORT = 6081
FRAME = 0x6558


def geneve(inner, ends, vni=100, proto=FRAME, options=(), **fields):
    """A frame or packet behind the outer headers, in scapy's words."""
    known = {name: fields.pop(name) for name in ("critical", "oam", "version", "optionlen") if name in fields}
    head = raw(GENEVE(vni=vni, proto=proto, options=list(options), **known))
    return carried(inner, ends, head=head, port=PORT, **fields)


__all__ = [name for name in globals() if not name.startswith("_")]
