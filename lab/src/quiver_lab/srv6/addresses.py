"""Who is who where segments are routed."""

from __future__ import annotations

SID = "2001:2:0:e::1"
"""The router's own segment, or the binding SID of what it does as a headend."""
SECOND_SID = "2001:2:0:e::2"
"""Another one of the router's."""
NEXT_SEGMENT = "2001:2:0:f::1"
LAST_SEGMENT = "2001:2:0:f::2"
SEGMENTS_PREFIX = "2001:2:0:f::/64"
"""Where segments of others lie: behind port 1."""
FUNCTION_PREFIX = "2001:2:0:e::/64"
"""What is left of the router's own segments once they are passed."""
CSID_BLOCK = "fcbb:bbbb:1::/48"
"""The router's own compressed SID: a block of 32 bits and 16 of its own."""
CSID_CARRIER = "fcbb:bbbb:1:2::"
"""It, and the one of another router behind it."""
CSID_NEXT = "fcbb:bbbb:2::"
SOURCE = "2001:2::1"
"""Of what the router encapsulates."""
DESTINATIONS = {"ip4": "20.0.0.0", "ip6": "2001:2:0:b000::"}
"""Of packets inside that go to port 1."""
DESTINATION_BACK = "2001:2:0:a000::"
"""Of those that go to port 0."""
HOSTS = {"ip4": ("198.18.0.2", "198.18.1.2"), "ip6": ("2001:2::2", "2001:2:0:1::2")}
"""Neighbours behind port 0 and port 1."""
TABLE = 100
"""A table of its own for End.T."""
