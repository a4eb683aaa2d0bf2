"""Who may send, who is routed another way, and how the routes under them move."""

from __future__ import annotations

from stress.change import Change
from stress.changes.routes import NEXT_HOPS_KNOWN, NEXT_HOPS_UNKNOWN

SHARED = "198.51.100.1"

LOADED = "memif1/0"

#: Rules enough for a thread of their own; the last takes the load.
MANY_RULES = "\n".join(
    [
        *(f"deny src 203.0.{n % 256}.0/24 dst 20.{n % 7}.0.0/16 proto udp dport {n}" for n in range(2000)),
        "permit",
    ]
)

POLICIES = [
    Change(
        "the last of three next hops behind each other, under the loaded route",
        cycle=(
            "ip route add 198.51.100.3/32 via 198.18.1.3 memif1/1",
            "ip route del 198.51.100.3/32 via 198.18.1.2 memif1/1",
            "ip route add 198.51.100.3/32 via 198.18.1.2 memif1/1",
            "ip route del 198.51.100.3/32 via 198.18.1.3 memif1/1",
        ),
        setup=(
            *NEXT_HOPS_KNOWN,
            "ip route add 198.51.100.3/32 via 198.18.1.2 memif1/1",
            "ip route add 198.51.100.2/32 via 198.51.100.3 resolve-via-host",
            f"ip route add {SHARED}/32 via 198.51.100.2",
            f"ip route add 21.0.0.0/16 via {SHARED}",
        ),
        teardown=(
            "ip route del 21.0.0.0/16",
            f"ip route del {SHARED}/32",
            "ip route del 198.51.100.2/32",
            "ip route del 198.51.100.3/32",
            *NEXT_HOPS_UNKNOWN,
        ),
    ),
    Change(
        "the flow hash of a loaded set of paths",
        cycle=(
            "set ip flow-hash src dst",
            "set ip flow-hash symmetric",
            "set ip flow-hash",
        ),
        setup=(*NEXT_HOPS_KNOWN, "ip route add 21.0.0.0/8 via 198.18.1.3 memif1/1 via 198.18.1.4 memif1/1"),
        teardown=(
            "ip route del 21.0.0.0/8 via 198.18.1.3 memif1/1 via 198.18.1.4 memif1/1",
            *NEXT_HOPS_UNKNOWN,
        ),
    ),
    Change(
        "NAT44 enabled, configured and disabled",
        cycle=(
            "nat44 plugin enable sessions 10000",
            "nat44 add address 192.0.2.1 - 192.0.2.16",
            "nat44 add static mapping tcp local 203.0.113.2 22 external 192.0.2.1 2222",
            "nat44 forwarding enable",
            f"set interface nat44 out {LOADED}",
            "clear nat44 sessions",
            f"set interface nat44 out {LOADED} del",
            "nat44 plugin disable",
        ),
    ),
    Change(
        "NAT64 enabled, configured and disabled",
        cycle=(
            "nat64 plugin enable sessions 10000",
            "nat64 add prefix 2001:db8:64::/96",
            "nat64 add pool address 192.0.2.1 - 192.0.2.16",
            "nat64 add static bib 2001:db8:1::2 22 192.0.2.1 2222 tcp",
            f"set interface nat64 out {LOADED}",
            f"set interface nat64 in {LOADED}",
            "clear nat64 sessions",
            f"set interface nat64 out {LOADED} del",
            "nat64 plugin disable",
        ),
    ),
    Change(
        "NAT66 enabled, configured and disabled",
        cycle=(
            "nat66 plugin enable sessions 10000",
            "nat66 add pool address 2001:db8:66::1 - 2001:db8:66::16",
            "nat66 add static mapping tcp local fd00:1::2 22 external 2001:db8:66::1 2222",
            "nat66 add static mapping local fd00:1::3 external 2001:db8:66::20",
            f"set interface nat66 out {LOADED}",
            "set interface nat66 in memif1/1",
            "clear nat66 sessions",
            f"set interface nat66 out {LOADED} del",
            "nat66 plugin disable",
        ),
    ),
    Change(
        "reverse path checks of the load",
        cycle=(
            f"set urpf ip4 rx loose {LOADED}",
            f"set urpf ip4 rx strict {LOADED}",
            "set urpf ip4 tx loose memif1/1",
            "set urpf-accept add 203.0.113.0/24",
            "set urpf-accept del 203.0.113.0/24",
            "set urpf ip4 tx off memif1/1",
            f"set urpf ip4 rx off {LOADED}",
        ),
        # Sources of the load are those of the generator's subnet, or whatever a profile says.
        setup=("set urpf-accept add 0.0.0.0/0",),
        teardown=("set urpf-accept del 0.0.0.0/0",),
    ),
    Change(
        "a whitelist in front of the load",
        cycle=(
            f"cop whitelist {LOADED} ip4 fib-id 88",
            f"cop interface {LOADED}",
            f"cop interface {LOADED} disable",
            f"cop whitelist {LOADED} ip4 disable",
        ),
        setup=("ip table add 88", "ip route add 0.0.0.0/0 table 88 via local"),
        teardown=("ip table del 88",),
    ),
    Change(
        "policies in front of the load",
        cycle=(
            f"abf attach ip4 policy 1 priority 5 {LOADED}",
            f"abf attach ip4 policy 2 priority 9 {LOADED}",
            f"abf attach ip4 del policy 1 {LOADED}",
            f"abf attach ip4 del policy 2 {LOADED}",
        ),
        setup=(
            "abf policy add id 1 match dst 203.0.113.0/24 via drop",
            "abf policy add id 2 match dst 21.0.0.0/8 via 198.18.1.2 memif1/1",
        ),
        teardown=("abf policy del id 1", "abf policy del id 2"),
    ),
    Change(
        "access lists in front of the load and behind it, replaced",
        cycle=(
            f"set acl-plugin interface {LOADED} input acl 1",
            "set acl-plugin interface memif1/1 output acl 2",
            "set acl-plugin acl-file index 1 {folder}/many.rules",
            "set acl-plugin acl index 2 deny src 203.0.113.{n}/32, permit",
            f"set acl-plugin interface {LOADED} input acl 2 sequence 1",
            "set acl-plugin acl index 1 deny dst 203.0.113.{n}/32 proto udp dport 7, permit",
            "set acl-plugin counters on",
            f"set acl-plugin interface {LOADED} input acl 2 del",
            "set acl-plugin counters off",
            "set acl-plugin interface memif1/1 output acl 2 del",
            f"set acl-plugin interface {LOADED} input acl 1 del",
        ),
        setup=("set acl-plugin acl index 1 permit", "set acl-plugin acl index 2 permit"),
        teardown=("delete acl-plugin acl index 1", "delete acl-plugin acl index 2"),
        files={"many.rules": MANY_RULES},
    ),
    Change(
        "unnumbered interfaces and directed broadcasts",
        cycle=(
            "set interface unnumbered loop1 use loop0",
            "set interface ip address loop0 203.0.113.1/24",
            "set interface ip directed-broadcast loop0 enable",
            "set interface ip directed-broadcast loop0 disable",
            "set interface ip address del loop0 203.0.113.1/24",
            "set interface unnumbered del loop1",
        ),
        setup=(
            "create loopback interface instance 0",
            "create loopback interface instance 1",
            "set interface ip address loop0 203.0.112.1/32",
        ),
        teardown=("delete loopback interface intfc loop1", "delete loopback interface intfc loop0"),
    ),
    Change(
        "policers that let all pass, attached, given other rates and taken away",
        cycle=(
            f"policer input name fast {LOADED}",
            f"policer output name fast {LOADED}",
            "policer add name fast rate pps cir 1000000000 cb 2000000000",
            "policer reset name fast",
            "policer add name fast rate kbps cir 1000000000 cb 2147483647 eb 2147483647 type 1r3c",
            f"policer output name fast {LOADED} unapply",
            f"policer input name fast {LOADED} unapply",
        ),
        setup=("policer add name fast rate kbps cir 1000000000 cb 2147483647",),
        teardown=("policer del name fast",),
    ),
    Change(
        "rates of subscribers that let all pass, given, changed and taken away",
        cycle=(
            "policer subscriber add 0.0.0.0/0 policer fast upload fast each 18",
            f"policer subscriber input {LOADED}",
            f"policer subscriber output {LOADED}",
            "policer add name fast rate pps cir 1000000000 cb 2000000000",
            "policer subscriber add 0.0.0.0/0 policer faster upload faster each 18",
            "policer subscriber add 20.0.0.0/8 policer fast each 24",
            "policer add name fast rate kbps cir 1000000000 cb 2147483647",
            "policer subscriber add 0.0.0.0/0 policer faster upload fast each 8",
            "policer subscriber del 20.0.0.0/8",
            "policer subscriber del 0.0.0.0/0",
            f"policer subscriber output {LOADED} del",
            f"policer subscriber input {LOADED} del",
        ),
        setup=(
            "policer add name fast rate kbps cir 1000000000 cb 2147483647",
            "policer add name faster rate pps cir 1000000000 cb 2147483647",
        ),
        teardown=("policer del name fast", "policer del name faster"),
    ),
    Change(
        "sessions that name policers and tables of routes, put and taken away under the load",
        cycle=(
            "classify session policer-hit-next fast table-index 0 match l3 ip4 proto 17",
            f"set policer classify interface {LOADED} ip4-table 0",
            f"set policer classify interface {LOADED} output ip4-table 0",
            f"set interface input acl intfc {LOADED} ip4-table 0",
            "classify session action set-ip4-fib-id 0 table-index 0 match l3 ip4 proto 17",
            "classify session policer-hit-next fast table-index 0 match l3 ip4 proto 17",
            f"set interface input acl intfc {LOADED} del",
            f"set policer classify interface {LOADED} output del",
            f"set policer classify interface {LOADED} input del",
            "classify session del table-index 0 match l3 ip4 proto 17",
        ),
        setup=(
            "policer add name fast rate kbps cir 1000000000 cb 2147483647",
            "classify table table 0 mask l3 ip4 proto",
        ),
        teardown=("classify table del table 0", "policer del name fast"),
    ),
    Change(
        "classes recorded and written by a map that is replaced",
        cycle=(
            f"qos record ip {LOADED}",
            f"qos mark ip {LOADED} id 1",
            "qos egress map id 1 ip in 1 to 255 out 0",
            "qos egress map id 1 ip in 1 to 255 out 4",
            f"qos mark ip {LOADED} disable",
            f"qos record ip {LOADED} disable",
        ),
        setup=("qos egress map id 1 ip in 1 to 255 out 4",),
        teardown=("qos egress map del id 1",),
    ),
    Change(
        "classifier tables that let all pass, attached, filled and taken away",
        cycle=(
            "classify session acl-hit-next deny table-index 0 match l3 ip4 src 203.0.113.{n}",
            f"set interface input acl intfc {LOADED} ip4-table 0",
            f"set interface output acl intfc {LOADED} ip4-table 0",
            f"set interface output acl intfc {LOADED} del",
            f"set interface input acl intfc {LOADED} del",
            "classify session del table-index 0 match l3 ip4 src 203.0.113.{n}",
        ),
        setup=("classify table table 0 mask l3 ip4 src",),
        teardown=("classify table del table 0",),
    ),
]
