//! The words of users for VXLAN and VXLAN-GPE tunnels.

use quiver_encap::tunnel::{CommandText, FarEndTexts, GroupTexts, UdpTexts, UdpWords};

const CHECKSUM: &str = "over IPv6, send datagrams without a checksum (RFC 6935)";

pub(crate) const VXLAN: UdpTexts = UdpTexts {
    create: CommandText {
        syntax: "create vxlan tunnel {src <local:ip> [dst <remote:ip>] \
                 [group <group:ip> [<via:interface>]] vni <vni:0-16777215> \
                 [instance <:0-16383>] [encap-vrf-id <table:u32>] \
                 [decap-next (l2 | node <node:node>)] [l3] [src_port <local-port:1-65535>] \
                 [dst_port <remote-port:1-65535>] [zero-udp6-checksum] [del]}",
        help: "Create a VXLAN tunnel, the interface vxlan_tunnelN, or delete it",
        examples: &[
            "create vxlan tunnel src 192.0.2.1 dst 192.0.2.2 vni 100",
            "create vxlan tunnel src 2001:db8::1 dst 2001:db8::2 vni 100 instance 7 l3",
            "create vxlan tunnel src 192.0.2.1 dst 192.0.2.2 vni 100 encap-vrf-id 5 dst_port 8472",
            "create vxlan tunnel src 192.0.2.1 group 239.1.1.1 e0 vni 100",
        ],
    },
    create_details: "It carries Ethernet frames, as a member of a bridge domain or with addresses \
                     of its own. The outer source port is made of the flow inside; the outer ECN \
                     field follows RFC 6040. With group it sends to a multicast group, and takes \
                     what anybody sends to it; frames from the far end of a tunnel with one \
                     destination are that tunnel's. With del, the tunnel between these ends is \
                     deleted.",
    words: UdpWords {
        local: "src",
        remote: "dst",
        local_port: "src_port",
        remote_port: "dst_port",
    },
    help: &[
        ("group", "a multicast group, in place of dst, and the interface that leads to it"),
        ("decap-next", "where frames go that the tunnel receives: to the bridge, or to a node"),
        ("l3", "the interface routes; kept, it may do so without the word"),
        ("src_port", "the UDP port at which this end takes packets; 4789 unless given"),
        ("dst_port", "the UDP port at which the other end does; 4789 unless given"),
        ("zero-udp6-checksum", CHECKSUM),
    ],
    delete: CommandText {
        syntax: "delete vxlan tunnel <interface>",
        help: "Delete a VXLAN tunnel",
        examples: &["delete vxlan tunnel vxlan_tunnel0"],
    },
    show: CommandText {
        syntax: "show vxlan tunnel [<interface>] [raw]",
        help: "Show VXLAN tunnels, their ends, and where their frames go",
        examples: &["show vxlan tunnel"],
    },
    list: "vxlan_tunnels",
    undo: "delete vxlan tunnel vxlan_tunnel<instance>",
    entry: "interfaces.vxlan_tunnel<instance>.vxlan: {src: <local>, dst: <remote>, group, \
            via, vni, table: <table>, decap-node: <node>, l2, l3, \
            src-port: <local-port>, \
            dst-port: <remote-port>, zero-udp6-checksum}",
    makes: "interface vxlan_tunnel<instance>",
    none: "no VXLAN tunnels; `create vxlan tunnel` makes one",
    no_such_ends: "there is no VXLAN tunnel with these ends, table, port and VNI",
    remedy: "`show vxlan tunnel`",
    memory: "peers of VXLAN tunnels",
    group: Some(GroupTexts {
        command: CommandText {
            syntax: "set vxlan tunnel <interface> group-interface (<via:interface> | none)",
            help: "Say which interface leads to the multicast group of a VXLAN tunnel",
            examples: &["set vxlan tunnel vxlan_tunnel0 group-interface e0"],
        },
        entry: "interfaces.<interface>.vxlan-group-interface: <via>",
        undo: "set vxlan tunnel <interface> group-interface none",
    }),
};

pub(crate) const GPE: UdpTexts = UdpTexts {
    create: CommandText {
        syntax: "create vxlan-gpe tunnel {local <local:ip> remote <remote:ip> \
                 vni <vni:0-16777215> [instance <:0-16383>] [encap-vrf-id <table:u32>] \
                 [next-ip4] [next-ip6] [next-ethernet] [local-port <local-port:1-65535>] \
                 [remote-port <remote-port:1-65535>] [zero-udp6-checksum] [del]}",
        help: "Create a VXLAN-GPE tunnel, the interface vxlan_gpe_tunnelN, or delete it",
        examples: &[
            "create vxlan-gpe tunnel local 192.0.2.1 remote 192.0.2.2 vni 100",
            "create vxlan-gpe tunnel local 2001:db8::1 remote 2001:db8::2 vni 7 next-ethernet",
        ],
    },
    create_details: "Without next-ethernet it carries IPv4 and IPv6 packets, whichever of the two \
                     words is given; each packet's header names what it is. With it, it carries \
                     Ethernet frames, as a member of a bridge domain. With del, the tunnel between \
                     these ends is deleted.",
    words: UdpWords {
        local: "local",
        remote: "remote",
        local_port: "local-port",
        remote_port: "remote-port",
    },
    help: &[
        ("next-ip4", "IP packets inside, as without the word"),
        ("next-ip6", "IP packets inside, as without the word"),
        ("next-ethernet", "Ethernet frames inside"),
        ("local-port", "the UDP port at which this end takes packets; 4790 unless given"),
        ("remote-port", "the UDP port at which the other end does; 4790 unless given"),
        ("zero-udp6-checksum", CHECKSUM),
    ],
    delete: CommandText {
        syntax: "delete vxlan-gpe tunnel <interface>",
        help: "Delete a VXLAN-GPE tunnel",
        examples: &["delete vxlan-gpe tunnel vxlan_gpe_tunnel0"],
    },
    show: CommandText {
        syntax: "show vxlan-gpe tunnel [<interface>]",
        help: "Show VXLAN-GPE tunnels, their ends, and where their packets go",
        examples: &["show vxlan-gpe tunnel"],
    },
    list: "vxlan_gpe_tunnels",
    undo: "delete vxlan-gpe tunnel vxlan_gpe_tunnel<instance>",
    entry: "interfaces.vxlan_gpe_tunnel<instance>.vxlan-gpe: {local: <local>, remote: <remote>, \
            vni, table: <table>, next-ip4, next-ip6, next-ethernet, local-port: <local-port>, \
            remote-port: <remote-port>, zero-udp6-checksum}",
    makes: "interface vxlan_gpe_tunnel<instance>",
    none: "no VXLAN-GPE tunnels; `create vxlan-gpe tunnel` makes one",
    no_such_ends: "there is no VXLAN-GPE tunnel with these ends, table, port and VNI",
    remedy: "`show vxlan-gpe tunnel`",
    memory: "peers of VXLAN-GPE tunnels",
    group: None,
};

pub(crate) const FAR: FarEndTexts = FarEndTexts {
    create: CommandText {
        syntax: "create vxlan interface {src <local:ip> vni <vni:1-16777215> evpn \
                 [instance <:0-16383>] [encap-vrf-id <table:u32>] \
                 [src_port <local-port:1-65535>] [dst_port <remote-port:1-65535>] \
                 [zero-udp6-checksum]}",
        help: "Create a VXLAN interface with many far ends, vxlan_tunnelN",
        examples: &["create vxlan interface src 192.0.2.1 vni 100 evpn"],
    },
    create_details: "One port of a bridge domain for a VNI. A control plane (EVPN by FRR: `lcp \
                     evpn`) or the operator says behind which VTEP a station is, and to which \
                     VTEPs frames to all stations go. Sources are not learned from its frames.",
    delete: CommandText {
        syntax: "delete vxlan interface <interface>",
        help: "Delete a VXLAN interface with many far ends",
        examples: &["delete vxlan interface vxlan_tunnel0"],
    },
    flood: CommandText {
        syntax: "set vxlan flood <interface> vtep <vtep:ip> [del]",
        help: "Send frames to all stations to a VTEP, or no more",
        examples: &["set vxlan flood vxlan_tunnel0 vtep 192.0.2.2"],
    },
    station: CommandText {
        syntax: "set vxlan station <interface> <station:mac> vtep <vtep:ip> [del]",
        help: "Say behind which VTEP a station is, or no more",
        examples: &["set vxlan station vxlan_tunnel0 02:00:00:00:00:01 vtep 192.0.2.2"],
    },
    show: CommandText {
        syntax: "show vxlan interface",
        help: "Show VXLAN interfaces with many far ends, and where frames to all stations go",
        examples: &["show vxlan interface"],
    },
    list: "vxlan_interfaces",
    entry: "interfaces.vxlan_tunnel<instance>.vxlan-evpn: {src: <local>, vni, evpn, \
            table: <table>, src-port: <local-port>, dst-port: <remote-port>, zero-udp6-checksum}",
    makes: "interface vxlan_tunnel<instance>",
    undo: "delete vxlan interface vxlan_tunnel<instance>",
    flood_entry: "interfaces.<interface>.vxlan-flood[]: <vtep>",
    flood_undo: "set vxlan flood <interface> vtep <vtep> del",
    station_entry: "interfaces.<interface>.vxlan-stations.<station>: <vtep>",
    station_undo: "set vxlan station <interface> <station> vtep <vtep> del",
    word: "vxlan",
};
