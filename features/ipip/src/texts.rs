//! The words of users for IP in IP tunnels.

use quiver_encap::tunnel::{CommandText, TunnelTexts};

pub(crate) const TEXTS: TunnelTexts = TunnelTexts {
    create: CommandText {
        syntax: "create ipip tunnel src <src:ip> {[dst <dst:ip>] [multipoint] [instance <:0-16383>] \
                 [outer-table-id <:u32>] [ttl <:1-255>] [dscp <:0-63>] [del]}",
        help: "Create an IP in IP tunnel, the interface ipipN, or delete it",
        examples: &[
            "create ipip tunnel src 192.0.2.1 dst 192.0.2.2",
            "create ipip tunnel src 2001:db8::1 dst 2001:db8::2 instance 7 ttl 64 dscp 46",
            "create ipip tunnel src 192.0.2.1 multipoint",
        ],
    },
    create_details: "It carries IPv4 and IPv6 packets. TTL and DSCP of the \
                     outer header are those of the inner packet unless they are set; the ECN field \
                     follows RFC 6040. A packet that the path does not take is told to its sender. \
                     With del, the tunnel between these ends is deleted.",
    delete: CommandText {
        syntax: "delete ipip tunnel <interface>",
        help: "Delete an IP in IP tunnel",
        examples: &["delete ipip tunnel ipip0"],
    },
    show: CommandText {
        syntax: "show ipip tunnel [<interface>]",
        help: "Show IP in IP tunnels, their ends, and where their packets go",
        examples: &[],
    },
    list: "ipip_tunnels",
    undo: "delete ipip tunnel ipip<instance>",
    entry: "interfaces.ipip<instance>.ipip: {src, dst, multipoint, ttl, dscp, table: \
            <outer-table-id>}",
    makes: "interface ipip<instance>",
    none: "no IP in IP tunnels; `create ipip tunnel` makes one",
    no_such_ends: "there is no IP in IP tunnel with these ends and table",
    remedy: "`show ipip tunnel`",
    memory: "peers of IP in IP tunnels",
};
