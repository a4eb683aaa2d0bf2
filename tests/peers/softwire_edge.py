"""The program of a softwire's edge (`softwire.py`): a tun device whose packets travel in those of IPv6."""

from __future__ import annotations

import fcntl
import os
import select
import socket
import struct
import sys

TUNSETIFF = 0x400454CA
IFF_TUN, IFF_NO_PI = 0x0001, 0x1000
#: The protocol number of IPv4 in another packet.
IPIP = 4
PACKET_BYTES_MAX = 65_535


def carry(device: str, local: str, border: str) -> None:
    """Carry packets until the end."""
    tun = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(tun, TUNSETIFF, struct.pack("16sH", device.encode(), IFF_TUN | IFF_NO_PI))
    outer = socket.socket(socket.AF_INET6, socket.SOCK_RAW, IPIP)
    outer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
    outer.bind((local, 0))
    outer.connect((border, 0))
    while True:
        ready, _, _ = select.select([tun, outer], [], [])
        if tun in ready:
            packet = os.read(tun, PACKET_BYTES_MAX)
            # Linux sends packets of IPv6 of its own, too.
            if packet and packet[0] >> 4 == 4:
                send(outer, packet)
        if outer in ready:
            try:
                os.write(tun, outer.recv(PACKET_BYTES_MAX))
            except OSError:
                # An error about a packet, or one that Linux does not take.
                continue


def send(outer: socket.socket, packet: bytes) -> None:
    """Send a packet to the border relay; what a full queue does not take is lost."""
    try:
        outer.send(packet)
    except OSError:
        return


if __name__ == "__main__":
    carry(*sys.argv[1:4])
