//! The words of users for GRE tunnels.

use quiver_encap::tunnel::{CommandText, TunnelTexts};

pub(crate) const TEXTS: TunnelTexts = TunnelTexts {
    create: CommandText {
        syntax: "create gre tunnel src <src:ip> {[dst <dst:ip>] [multipoint] [instance <:0-16383>] \
                 [outer-table-id <:u32>] [teb] [erspan <:0-1023>] [type-iii] [key <:u32>] \
                 [ttl <:1-255>] [dscp <:0-63>] [del]}",
        help: "Create a GRE tunnel, the interface greN, or delete it",
        examples: &[
            "create gre tunnel src 192.0.2.1 dst 192.0.2.2",
            "create gre tunnel src 2001:db8::1 dst 2001:db8::2 instance 7 teb key 42",
            "create gre tunnel src 192.0.2.1 multipoint",
            "create gre tunnel src 192.0.2.1 dst 203.0.113.2 erspan 7",
        ],
    },
    create_details: "Without teb it carries IPv4 and IPv6 packets, with it Ethernet frames, \
                     as a member of a bridge domain. With erspan it carries the copies of a mirror \
                     (`set interface span`). TTL and DSCP of the \
                     outer header are those of the inner packet unless they are set; the ECN field \
                     follows RFC 6040. A packet that the path does not take is told to its sender. \
                     With del, the tunnel between these ends is deleted.",
    delete: CommandText {
        syntax: "delete gre tunnel <interface>",
        help: "Delete a GRE tunnel",
        examples: &["delete gre tunnel gre0"],
    },
    show: CommandText {
        syntax: "show gre tunnel [<interface>]",
        help: "Show GRE tunnels, their ends, and where their packets go",
        examples: &[],
    },
    list: "gre_tunnels",
    undo: "delete gre tunnel gre<instance>",
    entry: "interfaces.gre<instance>.gre: {src, dst, multipoint, teb, erspan, type-iii, key, ttl, \
            dscp, table: <outer-table-id>}",
    makes: "interface gre<instance>",
    none: "no GRE tunnels; `create gre tunnel` makes one",
    no_such_ends: "there is no GRE tunnel with these ends, table and key",
    remedy: "`show gre tunnel`",
    memory: "peers of GRE tunnels",
};
