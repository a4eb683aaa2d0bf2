//! The words of users for Geneve tunnels.

use quiver_encap::tunnel::{CommandText, UdpTexts, UdpWords};

pub(crate) const TEXTS: UdpTexts = UdpTexts {
    create: CommandText {
        syntax: "create geneve tunnel {local <local:ip> remote <remote:ip> vni <vni:0-16777215> \
                 [instance <:0-16383>] [encap-vrf-id <table:u32>] \
                 [decap-next (l2 | node <node:node>)] [l3-mode] \
                 [local-port <local-port:1-65535>] [remote-port <remote-port:1-65535>] \
                 [zero-udp6-checksum] [del]}",
        help: "Create a Geneve tunnel, the interface geneve_tunnelN, or delete it",
        examples: &[
            "create geneve tunnel local 192.0.2.1 remote 192.0.2.2 vni 100",
            "create geneve tunnel local 2001:db8::1 remote 2001:db8::2 vni 100 l3-mode",
        ],
    },
    create_details: "It carries Ethernet frames, as a member of a bridge domain or with addresses \
                     of its own; with l3-mode it carries IPv4 and IPv6 packets. The outer source \
                     port is made of the flow inside; the outer ECN field follows RFC 6040. \
                     Received options are passed over, and a packet with a critical one is \
                     dropped. With del, the tunnel between these ends is deleted.",
    words: UdpWords {
        local: "local",
        remote: "remote",
        local_port: "local-port",
        remote_port: "remote-port",
    },
    help: &[
        ("decap-next", "where frames go that the tunnel receives: to the bridge, or to a node"),
        ("l2", "to the bridge or the interface's input, as without the word"),
        ("l3-mode", "IPv4 and IPv6 packets inside, without Ethernet headers"),
        ("local-port", "the UDP port at which this end takes packets; 6081 unless given"),
        ("remote-port", "the UDP port at which the other end does; 6081 unless given"),
        ("zero-udp6-checksum", "over IPv6, send datagrams without a checksum (RFC 6935)"),
    ],
    delete: CommandText {
        syntax: "delete geneve tunnel <interface>",
        help: "Delete a Geneve tunnel",
        examples: &["delete geneve tunnel geneve_tunnel0"],
    },
    show: CommandText {
        syntax: "show geneve tunnel [<interface>] [raw]",
        help: "Show Geneve tunnels, their ends, and where their packets go",
        examples: &["show geneve tunnel"],
    },
    list: "geneve_tunnels",
    undo: "delete geneve tunnel geneve_tunnel<instance>",
    entry: "interfaces.geneve_tunnel<instance>.geneve: {local: <local>, remote: <remote>, vni, \
            table: <table>, decap-node: <node>, decap-l2: <l2>, l3-mode, \
            local-port: <local-port>, remote-port: <remote-port>, zero-udp6-checksum}",
    makes: "interface geneve_tunnel<instance>",
    none: "no Geneve tunnels; `create geneve tunnel` makes one",
    no_such_ends: "there is no Geneve tunnel with these ends, table, port and VNI",
    remedy: "`show geneve tunnel`",
    memory: "peers of Geneve tunnels",
    group: None,
};
