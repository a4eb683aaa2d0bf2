"""Lists of senders before Linux hosts: who changes an address is cut off, others go on."""

from __future__ import annotations

from peers.network import DEVICE, answers, network, ping, ping_all


def test_a_linux_host_that_changes_an_address_is_cut_off() -> None:
    with network() as net:
        net.meet()
        router, (left, right) = net.router, net.sides
        mac = left.host.mac(DEVICE)
        router.configure(f"""set acl-plugin macip acl index 1 permit ip {left.ip4}/32 mac {mac}, \
            permit ip {left.ip6}/128 mac {mac}, permit ip fe80::/10 mac {mac}
            set acl-plugin macip interface {left.interface} 1""")
        ping_all(left.host, right.ip4)
        ping_all(left.host, right.ip6)
        # Another address of the same subnet, which the host may not use.
        other = str(left.ip4).rsplit(".", 1)[0] + ".77"
        left.host.ip("addr", "add", f"{other}/24", "dev", DEVICE)
        assert answers(ping(left.host, right.ip4, "-I", other, count=1)) == 0
        ping_all(left.host, right.ip4, "-I", str(left.ip4))
        # Another MAC address: neither its packets pass nor its ARP.
        left.host.ip("link", "set", DEVICE, "address", "02:00:00:00:77:77")
        assert answers(ping(left.host, right.ip4, count=1)) == 0
        left.host.ip("link", "set", DEVICE, "address", mac)
        ping_all(left.host, right.ip4)
        drops = [reason for node, reason in router.errors() if node == "acl-plugin-macip"]
        assert drops, "the drops are counted"
        router.check_sound()
