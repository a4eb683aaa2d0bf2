"""Neighbours, and who answers for which address."""

from __future__ import annotations

from stress.change import Change

NEIGHBOURS = [
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
    Change(
        "a BFD session with another host of a loaded link",
        cycle=(
            "bfd udp session add interface memif1/1 local-addr 198.18.1.1 peer-addr 198.18.1.77 "
            "desired-min-tx 10000 required-min-rx 10000 detect-mult 3",
            "bfd udp session mod interface memif1/1 local-addr 198.18.1.1 peer-addr 198.18.1.77 "
            "desired-min-tx 20000 required-min-rx 30000 detect-mult 5",
            "bfd udp session del interface memif1/1 local-addr 198.18.1.1 peer-addr 198.18.1.77",
        ),
        setup=("ip neighbor memif1/1 198.18.1.77 02:00:00:00:00:77 static",),
        teardown=("ip neighbor del memif1/1 198.18.1.77",),
    ),
    Change(
        "a virtual router that is active at once on a loaded link, and ends",
        cycle=(
            "vrrp vr add memif1/1 vr_id 9 priority 255 198.18.1.99",
            "vrrp proto start memif1/1 vr_id 9",
            "vrrp proto stop memif1/1 vr_id 9",
            "vrrp vr del memif1/1 vr_id 9",
        ),
    ),
]
