"""Switches of Linux between hosts and routers."""

from __future__ import annotations

from peers.namespace import Namespace, veth


def bridge(box: Namespace, name: str) -> None:
    """A switch of Linux, which does not look into groups."""
    box.ip("link", "add", name, "type", "bridge", "mcast_snooping", "0")
    box.ip("link", "set", name, "up")


def plug(box: Namespace, switch: str, host: Namespace, device: str, port: str) -> None:
    """Join a device of a host, which has no IPv6 of Linux's own, to a switch."""
    veth(box, port, host, device)
    box.ip("link", "set", port, "master", switch)
    host.sysctl(f"net.ipv6.conf.{device}.disable_ipv6", 1)
