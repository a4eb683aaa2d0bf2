"""Between two ends of a wire: VLANs, cross-connects, bonds, mirrors, LLDP."""

from __future__ import annotations

from stress.change import Change

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

LINKS = [
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
]
