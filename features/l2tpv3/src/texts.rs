//! The words of users for L2TPv3 tunnels.

use quiver_encap::tunnel::{CommandText, TunnelTexts};

pub(crate) const TEXTS: TunnelTexts = TunnelTexts {
    create: CommandText {
        syntax: "create l2tpv3 tunnel client_address <client_address:ip> our_address \
                 <our_address:ip> {[local-cookie <:word>] [remote-cookie <:word>] \
                 [cookie-bytes <:0|4|8>] [local-session-id <:1-4294967295>] \
                 [remote-session-id <:1-4294967295>] [l2-sublayer-present] [encap-vrf-id <:u32>] \
                 [instance <:0-16383>] [del]}",
        help: "Create an L2TPv3 tunnel, the interface l2tpv3_tunnelN, or delete it",
        examples: &["create l2tpv3 tunnel client_address 2001:db8::2 our_address 2001:db8::1 \
             local-cookie 10 remote-cookie 20 local-session-id 7 remote-session-id 8"],
    },
    create_details: "It carries Ethernet frames by a static session (RFC 3931 §4.1.1, RFC 4719), \
                     without a control connection: both ends are configured. A frame with another \
                     cookie is dropped. With del, the tunnel of this session between these ends is \
                     deleted.",
    delete: CommandText {
        syntax: "delete l2tpv3 tunnel <interface>",
        help: "Delete an L2TPv3 tunnel",
        examples: &["delete l2tpv3 tunnel l2tpv3_tunnel0"],
    },
    show: CommandText {
        syntax: "show l2tpv3 [<interface>]",
        help: "Show L2TPv3 tunnels, their sessions, and where their frames go",
        examples: &[],
    },
    list: "l2tpv3_tunnels",
    undo: "delete l2tpv3 tunnel l2tpv3_tunnel<instance>",
    entry: "interfaces.l2tpv3_tunnel<instance>.l2tpv3: {client: <client_address>, \
            our: <our_address>, local-cookie, remote-cookie, cookie-bytes, local-session-id, \
            remote-session-id, l2-sublayer-present, table: <encap-vrf-id>}",
    makes: "interface l2tpv3_tunnel<instance>",
    none: "no L2TPv3 tunnels; `create l2tpv3 tunnel` makes one",
    no_such_ends: "there is no L2TPv3 tunnel of this session with these ends and table",
    remedy: "`show l2tpv3`",
    memory: "peers of L2TPv3 tunnels",
};
