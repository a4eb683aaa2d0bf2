"""White lists of EtherTypes before Linux hosts: on a routed interface and on a bridge port."""

from __future__ import annotations

from peers.network import DEVICE, Network, answers, network, ping, ping_all


def drops(net: Network) -> int:
    """Frames that the list of the left interface has dropped."""
    return net.router.errors().get(("acl-plugin-in-nonip-l2", "acl-ethertype"), 0)


def forget(net: Network, side: int, address: str) -> None:
    """Let a host forget a neighbour."""
    net.sides[side].host.ip("neigh", "flush", "to", address)


def test_a_host_that_cannot_ask_by_arp_is_cut_off_until_arp_is_listed() -> None:
    with network() as net:
        net.meet()
        left, right = net.sides
        # Both directions: the host learns of the router from the router's own requests, too.
        for direction in ("input", "output"):
            net.router.ctl(f"set acl-plugin ethertype-whitelist {left.interface} {direction} 0x88cc")
        # IPv4 and IPv6 pass, neighbour discovery, too.
        ping_all(left.host, right.ip4)
        ping_all(left.host, right.ip6)
        forget(net, 0, left.router_ip4)
        assert answers(ping(left.host, right.ip4, count=1)) == 0
        assert drops(net) > 0
        for direction in ("input", "output"):
            net.router.ctl(f"set acl-plugin ethertype-whitelist {left.interface} {direction} 0x806 0x88cc")
        ping_all(left.host, right.ip4)
        net.router.check_sound()


def test_a_bridge_port_passes_what_its_list_has() -> None:
    with network(configured=False) as net:
        left, right = net.sides
        names = (left.interface, right.interface)
        net.router.ctl("create bridge-domain 1")
        for name in names:
            net.router.configure(f"""set interface state {name} up
                set interface l2 bridge {name} 1""")
        net.router.wait_for_link(*names)
        for number, side in enumerate((left, right), start=1):
            side.host.ip("addr", "add", f"10.99.0.{number}/24", "dev", DEVICE)
        ping_all(left.host, "10.99.0.2")
        net.router.ctl(f"set acl-plugin ethertype-whitelist {left.interface} input llc")
        ping_all(left.host, "10.99.0.2")
        forget(net, 0, "10.99.0.2")
        assert answers(ping(left.host, "10.99.0.2", count=1)) == 0
        assert drops(net) > 0
        net.router.ctl(f"set acl-plugin ethertype-whitelist {left.interface} input off")
        ping_all(left.host, "10.99.0.2")
        net.router.check_sound()
