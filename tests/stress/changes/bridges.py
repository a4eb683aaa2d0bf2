"""Bridge domains, their ports and MAC addresses."""

from __future__ import annotations

from stress.change import Change

#: Two interfaces beside the load that can be bridged.
PORTS = (
    "create sub-interfaces memif1/0 11",
    "create sub-interfaces memif1/1 11",
    "set interface state memif1/0.11 up",
    "set interface state memif1/1.11 up",
)

NO_PORTS = ("delete sub-interface memif1/0.11", "delete sub-interface memif1/1.11")

BRIDGES = [
    Change(
        "layer 2 tunnels made, bridged, sent by other policies and deleted, with their local SIDs",
        cycle=(
            "create sr l2-tunnel instance 7 unicast bsid fc00:77::b1",
            "set interface state sr_l2_tunnel7 up",
            "set interface l2 bridge sr_l2_tunnel7 7",
            "sr localsid address fc00:77::d behavior end.dt2u sr_l2_tunnel7",
            "sr localsid address fc00:77:0:d2::/64 behavior end.dt2m sr_l2_tunnel7 arg-fe2 16",
            "set sr l2-tunnel sr_l2_tunnel7 flood bsid fc00:77::b1",
            "set sr l2-tunnel sr_l2_tunnel7 flood group 5 off",
            "delete sr l2-tunnel sr_l2_tunnel7",
        ),
        setup=(
            *PORTS,
            "set interface l2 bridge memif1/0.11 7",
            "set sr encaps source addr fc00:77::1",
            "sr policy add bsid fc00:77::b1 next fc00:78::d encap.red",
        ),
        teardown=("sr policy del bsid fc00:77::b1", *NO_PORTS, "create bridge-domain 7 del"),
    ),
    Change(
        "bridge domains made and deleted, with interfaces that come and go",
        cycle=(
            "create bridge-domain 7 mac-age 1",
            "set interface l2 bridge memif1/0.11 7",
            "set interface l2 bridge memif1/1.11 7 1",
            "set interface l2 bridge memif1/1.11 7 2",
            "set interface l2 bridge memif1/1.11 8",
            "set interface l3 memif1/1.11",
            "set interface l3 memif1/0.11",
            "create bridge-domain 7 del",
            "create bridge-domain 8 del",
        ),
        setup=PORTS,
        teardown=NO_PORTS,
    ),
    Change(
        "a bridge's routed interface made and taken away",
        cycle=(
            "create loopback interface instance 7",
            "set interface state loop7 up",
            "set interface l2 bridge loop7 7 bvi",
            "set interface ip address loop7 10.77.0.1/24",
            "set interface mac address loop7 02:00:00:00:77:01",
            "set interface ip address del loop7 10.77.0.1/24",
            "set interface l3 loop7",
            "delete loopback interface intfc loop7",
        ),
        setup=(*PORTS, "set interface l2 bridge memif1/0.11 7"),
        teardown=(*NO_PORTS, "create bridge-domain 7 del"),
    ),
    Change(
        "MAC entries added, flushed and removed, and a domain's switches",
        cycle=(
            "l2fib add 02:77:00:00:00:00 7 memif1/0.11 count 10000",
            "l2fib add 02:77:00:00:00:01 7 memif1/1.11 static",
            "l2fib add 02:77:00:00:00:02 7 filter",
            "set bridge-domain learn 7 disable",
            "set bridge-domain learn 7",
            "set bridge-domain arp entry 7 10.77.0.9 02:77:00:00:00:09",
            "set bridge-domain arp entry 7 10.77.0.9 02:77:00:00:00:09 del",
            "l2fib flush-mac interface memif1/0.11",
            "l2fib flush-mac bridge-domain 7",
            "l2fib flush-mac all",
            "l2fib del 02:77:00:00:00:00 7 count 10000",
        ),
        setup=(
            *PORTS,
            "set interface l2 bridge memif1/0.11 7",
            "set interface l2 bridge memif1/1.11 7",
        ),
        teardown=(*NO_PORTS, "create bridge-domain 7 del"),
        round_s=0.5,
    ),
    Change(
        "1,000,000 MAC entries by one command",
        cycle=(
            "l2fib add 02:77:00:00:00:00 7 memif1/0.11 count 1000000",
            "clear l2fib",
        ),
        setup=(*PORTS, "set interface l2 bridge memif1/0.11 7"),
        teardown=(*NO_PORTS, "create bridge-domain 7 del"),
        round_s=2.0,
        is_long=True,
    ),
]
