"""Tunnels beside the load: they come and go, and move with the routes of their outer destinations."""

from __future__ import annotations

from stress.change import Change

_CREATE = "create gre tunnel src 198.18.0.1 dst 203.0.113.7 instance 7"
#: VXLAN tunnels that come and go together.
_MANY = range(1000, 2000)

TUNNELS = [
    Change(
        "a GRE tunnel created, routed into and deleted",
        cycle=(
            _CREATE,
            "set interface state gre7 up",
            "ip route add 203.0.114.0/24 via gre7",
            "delete gre tunnel gre7",
        ),
    ),
    Change(
        "the route of a tunnel's outer destination moved, and led through the tunnel itself",
        cycle=(
            "ip route add 203.0.113.7/32 via 198.18.1.2",
            "ip route del 203.0.113.7/32 via 198.18.1.2",
            "ip route add 203.0.113.7/32 via gre7",
            "ip route del 203.0.113.7/32 via gre7",
        ),
        setup=(_CREATE, "set interface state gre7 up", "ip route add 203.0.113.0/24 via 198.18.0.2"),
        teardown=("ip route del 203.0.113.0/24", "delete gre tunnel gre7"),
    ),
    Change(
        "a next hop of a multipoint tunnel said and forgotten",
        cycle=(
            "create teib interface ipip7 peer 10.77.0.2 nh 203.0.113.8",
            "delete teib interface ipip7 peer 10.77.0.2",
        ),
        setup=(
            "create ipip tunnel src 198.18.0.1 multipoint instance 7",
            "set interface state ipip7 up",
            "set interface ip address ipip7 10.77.0.1/24",
        ),
        teardown=("delete ipip tunnel ipip7",),
    ),
    Change(
        "tunnels of every other kind created and deleted",
        cycle=(
            "create geneve tunnel local 198.18.0.1 remote 203.0.113.7 vni 7 instance 7",
            "create gre tunnel src 198.18.0.1 dst 203.0.113.7 erspan 7 instance 8",
            "create l2tpv3 tunnel client_address 203.0.113.7 our_address 198.18.0.1 instance 7",
            "create 6rd tunnel ip6-pfx 2001:dba::/32 ip4-pfx 0.0.0.0/0 ip4-src 198.18.0.1 instance 7",
            "udp encap add 7 198.18.0.1 203.0.113.7 4444 4445",
            "ip route add 203.0.114.0/24 via udp_encap7",
            "udp encap del 7",
            "delete 6rd tunnel sixrd7",
            "delete l2tpv3 tunnel l2tpv3_tunnel7",
            "delete gre tunnel gre8",
            "delete geneve tunnel geneve_tunnel7",
        ),
    ),
    Change(
        "the cookies of an L2TPv3 tunnel changed",
        cycle=(
            "set l2tpv3 tunnel cookie l2tpv3_tunnel7 local 1 remote 1",
            "set l2tpv3 tunnel cookie l2tpv3_tunnel7 local 2 remote 2",
        ),
        setup=("create l2tpv3 tunnel client_address 203.0.113.7 our_address 198.18.0.1 instance 7",),
        teardown=("delete l2tpv3 tunnel l2tpv3_tunnel7",),
    ),
    Change(
        "mappings of LISP and its header changed",
        cycle=(
            "lisp remote-mapping add eid 203.0.114.0/24 rloc 203.0.113.7 p 1 w 1 rloc 203.0.113.8 p 1 w 3",
            "lisp header plain",
            "lisp remote-mapping add eid 203.0.114.0/24 rloc 203.0.113.8 p 1 w 1",
            "lisp header gpe",
            "lisp remote-mapping del eid 203.0.114.0/24",
        ),
        setup=("lisp enable", "lisp locator-set add site iface memif1/0 p 1 w 1", "lisp pitr ls site"),
        teardown=("lisp pitr disable", "lisp locator-set del site", "lisp disable"),
    ),
    Change(
        "a VXLAN tunnel created, bridged and deleted",
        cycle=(
            "create vxlan tunnel src 198.18.0.1 dst 203.0.113.9 vni 9 instance 9",
            "set interface state vxlan_tunnel9 up",
            "set interface l2 bridge vxlan_tunnel9 909",
            "delete vxlan tunnel vxlan_tunnel9",
        ),
        setup=("create bridge-domain 909",),
        teardown=("create bridge-domain 909 del",),
    ),
    Change(
        f"{len(_MANY):,} VXLAN tunnels created and deleted",
        cycle=("exec {folder}/create.cli", "exec {folder}/delete.cli"),
        files={
            "create.cli": "".join(
                f"create vxlan tunnel src 198.18.0.1 dst 203.0.113.9 vni {vni} instance {vni}\n"
                for vni in _MANY
            ),
            "delete.cli": "".join(f"delete vxlan tunnel vxlan_tunnel{vni}\n" for vni in _MANY),
        },
        round_s=0.5,
    ),
    Change(
        "a far end and a station of a VXLAN interface said and forgotten",
        cycle=(
            "set vxlan flood vxlan_tunnel8 vtep 203.0.113.9",
            "set vxlan station vxlan_tunnel8 02:00:00:00:09:09 vtep 203.0.113.10",
            "set vxlan station vxlan_tunnel8 02:00:00:00:09:09 vtep 203.0.113.10 del",
            "set vxlan flood vxlan_tunnel8 vtep 203.0.113.9 del",
        ),
        setup=(
            "create bridge-domain 908",
            "create vxlan interface src 198.18.0.1 vni 8 evpn instance 8",
            "set interface l2 bridge vxlan_tunnel8 908",
        ),
        teardown=("delete vxlan interface vxlan_tunnel8", "create bridge-domain 908 del"),
    ),
]
