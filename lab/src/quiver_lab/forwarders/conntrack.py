"""The connections that the Linux kernel tracks in a network namespace: how many there are, and none any more.

As a program (`conntrack.py`) it ends all of those of its own namespace. It needs nothing but Python."""

from __future__ import annotations

import errno
import os
import socket
import struct

COUNT = "/proc/sys/net/netfilter/nf_conntrack_count"
NETLINK_NETFILTER = 12
DELETE = 1 << 8 | 2
"""Of the subsystem ctnetlink. Without a tuple it is about all connections."""
NLM_F_REQUEST, NLM_F_ACK = 1, 4
NLMSG_ERROR = 2
REPLY_BYTES_MAX = 4_096


def request() -> bytes:
    """A header of netlink, and of netfilter: any family, version 0, no resource."""
    body = struct.pack("=BBH", socket.AF_UNSPEC, 0, 0)
    return struct.pack("=IHHII", 16 + len(body), DELETE, NLM_F_REQUEST | NLM_F_ACK, 1, 0) + body


def failure(reply: bytes) -> int:
    """The error of an acknowledgement, as in errno; 0: it was done."""
    if len(reply) < 20:
        return errno.EBADMSG
    _, kind, _, _, _, code = struct.unpack_from("=IHHIIi", reply)
    return -code if kind == NLMSG_ERROR else errno.EBADMSG


def end_all() -> None:
    """End all connections; OSError when the kernel refuses."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_NETFILTER) as link:
        link.settimeout(60.0)
        link.sendto(request(), (0, 0))
        if code := failure(link.recv(REPLY_BYTES_MAX)):
            raise OSError(code, f"connections cannot be ended: {os.strerror(code)}")


if __name__ == "__main__":
    end_all()
