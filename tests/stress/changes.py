"""The changes that must not lose a packet. A new feature adds what configures it here.

The load comes in at memif1/0 and memif1/1 and is routed to the other by 20.0.0.0/8 via 198.18.0.2 and
21.0.0.0/8 via 198.18.1.2 (rig.py). A background stream goes from pg0 by 22.0.0.0/8 to pg1.
"""

from __future__ import annotations

from stress.change import Change

BULK = 100_000
#: Routes of an exec file, one command each.
FILE_ROUTES = 2_000

NEXT = "198.18.1.{}"
NEIGHBOURS = tuple(
    f"ip neighbor memif1/1 198.18.1.{number} 02:00:00:00:00:02 static" for number in range(3, 11)
)
NO_NEIGHBOURS = tuple(f"ip neighbor del memif1/1 198.18.1.{number}" for number in range(3, 11))

ROUTES = [
    Change(
        f"{BULK} routes by one command",
        cycle=("exec {folder}/add.cli", "exec {folder}/del.cli"),
        files={
            "add.cli": f"ip route add 60.0.0.0/32 count {BULK} via 198.18.1.2\n",
            "del.cli": f"ip route del 60.0.0.0/32 count {BULK}\n",
        },
        round_s=0.5,
    ),
    Change(
        f"{FILE_ROUTES} routes from a file",
        cycle=("exec {folder}/add.cli", "exec {folder}/del.cli"),
        files={
            f"{verb}.cli": "".join(
                f"ip route {verb} 61.{n >> 8}.{n & 255}.0/24{via}\n" for n in range(FILE_ROUTES)
            )
            for verb, via in (("add", " via 198.18.1.2"), ("del", ""))
        },
    ),
    Change(
        "single routes",
        cycle=("ip route add 62.0.{n}.0/24 via 198.18.0.2", "ip route del 62.0.{n}.0/24"),
    ),
    Change(
        "single routes inside the loaded one",
        cycle=("ip route add 21.0.0.{n}/32 via 198.18.1.2", "ip route del 21.0.0.{n}/32"),
    ),
    Change(
        "a route that covers the loaded one",
        cycle=("ip route add 16.0.0.0/4 via drop", "ip route del 16.0.0.0/4"),
    ),
    Change(
        "20,000 IPv6 routes by one command",
        cycle=(
            "ip route add 2001:db8::/64 count 20000 via 2001:2:1::2",
            "ip route del 2001:db8::/64 count 20000",
        ),
        setup=(
            "set interface ip address memif1/1 2001:2:1::1/64",
            "ip neighbor memif1/1 2001:2:1::2 02:00:00:00:00:02 static",
        ),
        teardown=(
            "ip neighbor del memif1/1 2001:2:1::2",
            "set interface ip address del memif1/1 2001:2:1::1/64",
        ),
        round_s=0.5,
    ),
    Change(
        "1,000,000 routes by one command",
        cycle=(
            "ip route add 64.0.0.0/32 count 1000000 via 198.18.1.2",
            "ip route del 64.0.0.0/32 count 1000000",
        ),
        round_s=3.0,
        is_long=True,
    ),
]

NEXT_HOPS = [
    Change(
        "the next hop of the loaded route",
        cycle=(
            "ip route add 21.0.0.0/8 via 198.18.1.3 memif1/1",
            "ip route del 21.0.0.0/8 via 198.18.1.2 memif1/1",
            "ip route add 21.0.0.0/8 via 198.18.1.2 memif1/1",
            "ip route del 21.0.0.0/8 via 198.18.1.3 memif1/1",
        ),
        setup=NEIGHBOURS,
        teardown=NO_NEIGHBOURS,
    ),
    Change(
        f"the next hop that {BULK} routes share with the loaded one",
        cycle=(
            "ip route add 198.51.100.1/32 via 198.18.1.3 memif1/1",
            "ip route del 198.51.100.1/32 via 198.18.1.2 memif1/1",
            "ip route add 198.51.100.1/32 via 198.18.1.2 memif1/1",
            "ip route del 198.51.100.1/32 via 198.18.1.3 memif1/1",
        ),
        setup=(
            *NEIGHBOURS,
            "ip route add 198.51.100.1/32 via 198.18.1.2 memif1/1",
            f"ip route add 60.0.0.0/32 count {BULK} via 198.51.100.1",
            "ip route add 21.0.0.0/16 via 198.51.100.1",
        ),
        teardown=(
            "ip route del 21.0.0.0/16",
            f"ip route del 60.0.0.0/32 count {BULK}",
            "ip route del 198.51.100.1/32",
            *NO_NEIGHBOURS,
        ),
    ),
    Change(
        "a loaded set of equal paths grows to 8 and shrinks",
        cycle=(
            *(f"ip route add 21.0.0.0/8 via 198.18.1.{n} memif1/1" for n in range(3, 10)),
            *(f"ip route del 21.0.0.0/8 via 198.18.1.{n} memif1/1" for n in range(3, 10)),
        ),
        setup=NEIGHBOURS,
        teardown=NO_NEIGHBOURS,
    ),
    Change(
        "weights of a loaded set of paths",
        cycle=(
            "ip route add 21.0.0.0/8 via 198.18.1.3 memif1/1 weight 7",
            "ip route add 21.0.0.0/8 via 198.18.1.4 memif1/1 weight 50",
            "ip route del 21.0.0.0/8 via 198.18.1.3 memif1/1",
            "ip route del 21.0.0.0/8 via 198.18.1.4 memif1/1",
        ),
        setup=NEIGHBOURS,
        teardown=NO_NEIGHBOURS,
    ),
]

NEIGHBOUR_CHANGES = [
    Change(
        "other neighbours",
        cycle=(
            "ip neighbor memif1/1 198.18.1.{n} 02:00:00:00:01:00 static",
            "ip neighbor memif1/1 198.18.1.{n} 02:00:00:00:01:01 static",
            "ip neighbor del memif1/1 198.18.1.{n}",
        ),
    ),
    Change(
        "the MAC address of the loaded neighbour",
        cycle=(
            "ip neighbor memif1/1 198.18.1.2 02:00:00:00:00:99 static",
            "ip neighbor memif1/1 198.18.1.2 02:00:00:00:00:02 static",
        ),
    ),
    Change(
        "how neighbours age, and how many there may be",
        cycle=(
            "set ip neighbor-config ip4 limit 1000 recycle age 100 reachable 5",
            "set ip neighbor-config ip4 limit 65536 norecycle age 1200 reachable 40",
        ),
    ),
    Change(
        "proxies for others",
        cycle=(
            "set interface proxy-arp memif1/1 enable",
            "set arp proxy start 198.18.1.100 end 198.18.1.200",
            "set arp proxy start 198.18.1.100 end 198.18.1.200 del",
            "set interface proxy-arp memif1/1 disable",
            "set ip6 nd proxy memif1/1 2001:2:9::{n}",
            "set ip6 nd proxy memif1/1 del 2001:2:9::{n}",
        ),
    ),
    Change(
        "addresses announced, asked for and taken away",
        cycle=(
            "set interface ip address memif1/1 2001:2:8::{n}/128",
            "set interface ip address memif1/1 203.0.113.{n}/32",
            "send gratuitous-arp memif1/1",
            "set interface ip address del memif1/1 203.0.113.{n}/32",
            "set interface ip address del memif1/1 2001:2:8::{n}/128",
        ),
    ),
    Change(
        "addresses that wait until they were asked for",
        cycle=(
            "set interface ip address memif1/1 2001:2:8::{n}/128",
            "set interface ip address del memif1/1 2001:2:8::{n}/128",
        ),
        setup=("set ip dad ip6 memif1/1 transmits 1 wait",),
        teardown=("set ip dad ip6 memif1/1 transmits 1",),
    ),
    Change(
        "the link-local address of the loaded interface",
        cycle=(
            "enable ip6 interface memif1/1",
            "set ip6 link-local address memif1/1 fe80::{n}",
            "set interface ip address del memif1/1 fe80::{n}/128",
            "disable ip6 interface memif1/1",
        ),
    ),
    Change(
        "limits of ICMP errors, and paths",
        cycle=(
            "set ip icmp-rate-limit 10 burst 1",
            "set ip pmtu peer 192.0.2.{n} path-mtu 1400",
            "set ip pmtu del peer 192.0.2.{n}",
            "set ip icmp-rate-limit 1000 burst 100",
        ),
    ),
]

VLANS = [
    Change(
        "sub-interfaces of a loaded interface",
        cycle=(
            "create sub-interfaces memif1/0 {n}",
            "set interface state memif1/0.{n} up",
            "set interface ip address memif1/0.{n} 203.0.113.1/24",
            "delete sub-interface memif1/0.{n}",
        ),
    ),
    Change(
        "sub-interfaces for all frames, and for two tags, of a loaded interface",
        cycle=(
            "create sub-interfaces memif1/0 5000 dot1ad 7 inner-dot1q {n} exact-match",
            "create sub-interfaces memif1/0 5001 dot1q any",
            "set interface state memif1/0.5000 up",
            "delete sub-interface memif1/0.5001",
            "delete sub-interface memif1/0.5000",
        ),
    ),
    Change(
        "hundreds of sub-interfaces of a loaded interface",
        cycle=("create sub-interfaces memif1/1 1000-1199", "exec {folder}/delete.cli"),
        files={
            "delete.cli": "".join(f"delete sub-interface memif1/1.{number}\n" for number in range(1000, 1200))
        },
    ),
    Change(
        "sub-interfaces cross-connected, their tags rewritten, beside the load",
        cycle=(
            "set interface l2 xconnect memif1/0.8 pg1",
            "set interface l2 tag-rewrite memif1/0.8 pop 1",
            "set interface l2 tag-rewrite memif1/0.8 translate 1-2 dot1ad 9 10",
            "set interface l2 tag-rewrite memif1/0.8 disable",
            "set interface l3 memif1/0.8",
        ),
        setup=("create sub-interfaces memif1/0 8", "set interface state memif1/0.8 up"),
        teardown=("delete sub-interface memif1/0.8",),
    ),
]

INTERFACES = [
    Change(
        "addresses of another interface",
        cycle=(
            "set interface ip address pg0 203.0.113.1/24",
            "set interface ip address pg0 2001:db8:1::1/64",
            "set interface ip address del pg0 2001:db8:1::1/64",
            "set interface ip address del pg0 203.0.113.1/24",
        ),
    ),
    Change(
        "a second address of a loaded interface",
        cycle=(
            "set interface ip address memif1/0 203.0.113.1/24",
            "set interface ip address del memif1/0 203.0.113.1/24",
        ),
    ),
    Change(
        "loopbacks",
        cycle=(
            "create loopback interface instance {n}",
            "set interface state loop{n} up",
            "set interface ip address loop{n} 203.0.113.1/24",
            "delete loopback interface intfc loop{n}",
        ),
    ),
    Change(
        "packet generator interfaces and streams",
        cycle=(
            "create packet-generator interface pg7",
            "set interface state pg7 up",
            "packet-generator new { name other interface pg7 node ip4-input rate 10000 worker 0 "
            "data { UDP: 198.19.0.2 -> 198.51.100.1 UDP: 1 -> 2 incrementing 18 } }",
            "packet-generator enable-stream other",
            "packet-generator delete other",
            "delete packet-generator interface pg7",
        ),
        setup=("ip route add 198.51.100.1/32 via drop",),
        teardown=("ip route del 198.51.100.1/32",),
    ),
    Change(
        "memif interfaces",
        cycle=(
            "create interface memif id {n} socket-id 7 slave ring-size 4096",
            "set interface state memif7/{n} up",
            "delete interface memif memif7/{n}",
        ),
        setup=("create memif socket id 7 filename {folder}/other.sock",),
        teardown=("delete memif socket id 7",),
    ),
    Change(
        "memif interfaces that connect to each other",
        cycle=(
            "create interface memif id {n} socket-id 7 master",
            "create interface memif id {n} socket-id 8 slave ring-size 4096",
            "set interface state memif7/{n} up",
            "set interface state memif8/{n} up",
            "show memif memif8/{n}",
            "delete interface memif memif8/{n}",
            "delete interface memif memif7/{n}",
        ),
        setup=(
            "create memif socket id 7 filename {folder}/other.sock",
            "create memif socket id 8 filename {folder}/./other.sock",
        ),
        teardown=("delete memif socket id 7", "delete memif socket id 8"),
    ),
    Change(
        "taps",
        cycle=(
            "create tap id {n} host-if-name stress{n}",
            "set interface state tap{n} up",
            "delete tap tap{n}",
        ),
    ),
    Change(
        "state, MTU and MAC address of another interface",
        cycle=(
            "set interface state loop0 up",
            "set interface mtu packet 9000 loop0",
            "set interface mac address loop0 02:fe:00:00:77:77",
            "set interface mtu packet 1500 loop0",
            "set interface state loop0 down",
        ),
        setup=("create loopback interface instance 0",),
        teardown=("delete loopback interface intfc loop0",),
    ),
    Change(
        "MTU and promiscuous mode of a loaded interface",
        cycle=(
            "set interface mtu packet 9000 memif1/1",
            "set interface promiscuous on memif1/0",
            "set interface mtu packet 1500 memif1/1",
            "set interface promiscuous off memif1/0",
        ),
    ),
    Change(
        "queues moved between workers",
        cycle=(
            "set interface rx-placement tap7 worker 1",
            "set interface rx-mode tap7 interrupt",
            "set interface rx-placement tap7 worker 0",
            "set interface rx-mode tap7 adaptive",
        ),
        setup=("create tap id 7 host-if-name stress7", "set interface state tap7 up"),
        teardown=("delete tap tap7",),
    ),
]

TABLES = [
    Change(
        "tables with routes",
        cycle=(
            "ip table add {n}9",
            "ip route add 10.0.0.0/8 table {n}9 via 198.18.1.2 memif1/1",
            "ip route add 10.1.0.0/16 table {n}9 via drop",
            "ip6 table add {n}9",
            "ip route add 2001:db8::/32 table {n}9 via drop",
            "ip6 table del {n}9",
            "ip table del {n}9",
        ),
    ),
    Change(
        "another interface moved between tables",
        cycle=("set interface ip table loop0 77", "set interface ip table loop0 0"),
        setup=("create loopback interface instance 0", "ip table add 77"),
        teardown=("delete loopback interface intfc loop0", "ip table del 77"),
    ),
]

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

FEATURES = [
    Change(
        "cross-connects and patches of other interfaces",
        cycle=(
            "set interface l2 xconnect loop0 loop1",
            "set interface l2 xconnect loop1 loop0",
            "set interface l3 loop0",
            "set interface l3 loop1",
            "test l2patch rx loop0 tx loop1",
            "test l2patch rx loop0 tx loop1 del",
        ),
        setup=("create loopback interface instance 0", "create loopback interface instance 1"),
        teardown=("delete loopback interface intfc loop0", "delete loopback interface intfc loop1"),
    ),
    Change(
        "members of another bond",
        cycle=(
            "bond add BondEthernet7 pg7",
            "bond add BondEthernet7 pg8",
            "set interface mac address BondEthernet7 02:fe:00:00:77:07",
            "set interface mac address BondEthernet7 02:fe:00:00:77:08",
            "bond del pg7",
            "bond del pg8",
        ),
        setup=(
            "create packet-generator interface pg7",
            "create packet-generator interface pg8",
            "set interface state pg7 up",
            "set interface state pg8 up",
            "create bond mode xor load-balance l34 id 7",
            "set interface state BondEthernet7 up",
        ),
        teardown=(
            "delete bond BondEthernet7",
            "delete packet-generator interface pg7",
            "delete packet-generator interface pg8",
        ),
    ),
    Change(
        "bonds",
        cycle=(
            "create bond mode lacp load-balance l34 id 8",
            "set interface state BondEthernet8 up",
            "bond add BondEthernet8 pg7",
            "delete bond BondEthernet8",
        ),
        setup=("create packet-generator interface pg7", "set interface state pg7 up"),
        teardown=("delete packet-generator interface pg7",),
    ),
    Change(
        "another interface mirrored",
        cycle=(
            "set interface span pg7 destination pg8",
            "set interface span pg7 destination pg8 rx",
            "set interface span pg7 disable",
        ),
        setup=("create packet-generator interface pg7", "create packet-generator interface pg8"),
        teardown=(
            "delete packet-generator interface pg7",
            "delete packet-generator interface pg8",
        ),
    ),
    Change(
        "LLDP on another interface",
        cycle=(
            "set interface lldp pg7 port-desc other",
            "set lldp tx-interval 1",
            "set interface lldp pg7 disable",
        ),
        setup=("create packet-generator interface pg7", "set interface state pg7 up"),
        teardown=("delete packet-generator interface pg7", "set lldp tx-interval 30"),
    ),
    Change(
        "traces of the load",
        cycle=("trace add memif-input 100", "show trace max 10", "clear trace"),
    ),
    Change(
        "captures of the load",
        cycle=("pcap trace rx tx drop max 1000 file {folder}/all.pcap", "pcap trace off"),
    ),
]

GROUPS = [
    Change(
        "multicast routes",
        cycle=(
            "ip mroute add 232.1.{n}.1 via memif1/0 Accept via memif1/1 Forward via pg0 Forward",
            "ip mroute add 198.18.0.9 232.1.{n}.1 via memif1/0 Accept via memif1/1 Forward",
            "ip mroute add ff0e::{n} via memif1/0 Accept via memif1/1 Forward",
            "ip mroute del ff0e::{n}",
            "ip mroute del 198.18.0.9 232.1.{n}.1",
            "ip mroute del 232.1.{n}.1",
        ),
    ),
    Change(
        "groups that the router joins on a loaded interface",
        cycle=(
            "igmp listen enable int memif1/1 239.1.{n}.1",
            "mld listen enable int memif1/1 ff0e::{n}",
            "mld listen disable int memif1/1 ff0e::{n}",
            "igmp listen disable int memif1/1 239.1.{n}.1",
        ),
    ),
    Change(
        "router advertisements on a loaded interface",
        cycle=(
            "ip6 nd memif1/1 prefix 2001:db8:{n}::/64 3600 1800",
            "ip6 nd memif1/1 ra-interval 4 3 ra-lifetime 60 ra-preference high",
            "ip6 nd memif1/1 no ra-suppress",
            "ip6 nd memif1/1 ra-suppress",
            "ip6 nd memif1/1 no ra-interval ra-lifetime ra-preference",
            "ip6 nd memif1/1 no prefix 2001:db8:{n}::/64",
        ),
        setup=("set interface ip address memif1/1 2001:2:1::1/64",),
        teardown=("set interface ip address del memif1/1 2001:2:1::1/64",),
    ),
]

READING = [
    Change(
        "everything shown",
        cycle=(
            "show runtime",
            "show interface",
            "show errors",
            "show hardware-interfaces verbose",
            "show memif memif1/0",
            "show ip fib",
            "show adj",
            "show vlan",
            "show load-balance",
            "show ip mfib",
            "show ip6 nd",
            "show igmp",
            "show mld",
            "show node",
            "show graph",
            "show buffers",
            "show memory",
            "show threads",
            "show running-config",
        ),
    ),
    Change(
        "descriptors of the loaded memif shown",
        cycle=("show memif memif1/0 descriptors",),
        round_s=1.0,
        is_long=True,
    ),
    Change(
        "counters cleared",
        cycle=("clear runtime", "clear errors", "clear interfaces"),
        clears_counters=True,
    ),
]

REASSEMBLY = [
    Change(
        "virtual reassembly on and off on the loaded interfaces",
        cycle=(
            "set interface reassembly memif1/0 virtual on",
            "set interface reassembly memif1/1 virtual ip4",
            "set interface reassembly memif1/0 virtual off",
            "set interface reassembly memif1/1 virtual off",
        ),
    ),
    Change(
        "full reassembly on and off on the loaded interfaces",
        cycle=(
            "set interface reassembly memif1/0 on",
            "set interface reassembly memif1/1 on",
            "set interface reassembly memif1/0 off",
            "set interface reassembly memif1/1 off",
        ),
    ),
    Change(
        "limits of reassembly",
        cycle=(
            "set ip reassembly max-reassemblies 8192 max-reassembly-length 45",
            "set ip reassembly virtual timeout 100 expire-walk-interval 10",
            "set ip reassembly max-buffers 1024",
            "set ip reassembly max-reassemblies 1024 max-reassembly-length 128",
            "set ip reassembly virtual timeout 2000 expire-walk-interval 100",
            "set ip reassembly max-buffers 4096",
            "show ip4-full-reassembly details",
        ),
        setup=("set interface reassembly memif1/0 virtual on",),
        teardown=("set interface reassembly memif1/0 virtual off",),
    ),
    Change(
        "policies for hop-by-hop options",
        cycle=(
            "set ip6 hop-by-hop memif1/0 drop",
            "set ip6 hop-by-hop memif1/0 process",
            "set ip6 hop-by-hop memif1/0 punt",
            "set ip6 hop-by-hop memif1/0 ignore",
        ),
    ),
]

SHARED = "198.51.100.1"
LOADED = "memif1/0"

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
            *NEIGHBOURS,
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
            *NO_NEIGHBOURS,
        ),
    ),
    Change(
        "the flow hash of a loaded set of paths",
        cycle=(
            "set ip flow-hash src dst",
            "set ip flow-hash symmetric",
            "set ip flow-hash",
        ),
        setup=(*NEIGHBOURS, "ip route add 21.0.0.0/8 via 198.18.1.3 memif1/1 via 198.18.1.4 memif1/1"),
        teardown=(
            "ip route del 21.0.0.0/8 via 198.18.1.3 memif1/1 via 198.18.1.4 memif1/1",
            *NO_NEIGHBOURS,
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
]

CHANGES = [
    *ROUTES,
    *NEXT_HOPS,
    *NEIGHBOUR_CHANGES,
    *VLANS,
    *INTERFACES,
    *TABLES,
    *POLICIES,
    *BRIDGES,
    *FEATURES,
    *REASSEMBLY,
    *GROUPS,
    *READING,
]
