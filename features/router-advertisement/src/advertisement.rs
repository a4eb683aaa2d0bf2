//! `icmp6-router-advertisement`: another router tells of itself (RFC 4861 §6.1.2, §6.2.7).

use std::net::Ipv6Addr;

use quiver_core::graph::node::{Node, NodeSpec};
use quiver_core::throttle::TokenBucket;
use quiver_core::{Context, Frame, InterfaceId, NodeId, Packet};
use quiver_forwarding::nodes;
use quiver_wire::icmp6;
use quiver_wire::icmp6::nd::{self, NdOption, Options, option_kind};

use crate::notifications::{Notification, RouteSays, RouterSays};
use crate::solicitation::{RouterDiscoveryDrop, read};

/// The node's name.
pub const NAME: &str = "icmp6-router-advertisement";
/// Advertisements that a worker tells of in a second.
pub const ADVERTISEMENTS_PER_SECOND: u64 = 50;
/// Advertisements that a worker may tell of at once.
pub const ADVERTISEMENTS_BURST: u64 = 50;
/// Prefixes of one advertisement that are told.
pub const PREFIXES_PER_EVENT_MAX: usize = 16;
/// Routes of one advertisement that are told.
pub const ROUTES_PER_EVENT_MAX: usize = 16;

struct Advertisement {
    done: NodeId,
    bucket: TokenBucket,
}

impl Advertisement {
    fn decide(
        &mut self,
        cx: &mut Context<'_>,
        packet: &Packet,
    ) -> Result<NodeId, RouterDiscoveryDrop> {
        let (header, message) = read(packet.bytes())?;
        let nd::Message::RouterAdvertisement {
            hop_limit,
            flags,
            lifetime_s,
            reachable_ms,
            retransmit_ms,
            options,
        } = message
        else {
            return Err(RouterDiscoveryDrop::BadMessage);
        };
        if !self.bucket.take(cx.now_ns) {
            return Err(RouterDiscoveryDrop::TooMany);
        }
        let from = header.source();
        let mtu_bytes = options.iter().find_map(|option| match option {
            NdOption::Mtu(mtu) => Some(mtu),
            _ => None,
        });
        let mtu_bytes = mtu_bytes.unwrap_or(0);
        let says =
            RouterSays { hop_limit, flags, lifetime_s, reachable_ms, retransmit_ms, mtu_bytes };
        Notification::Router { from, says }.send(cx, packet.rx);
        let prefixes = options.iter().filter_map(|option| match option {
            NdOption::Prefix(says) => Some(says),
            _ => None,
        });
        let mut left_out = 0;
        for (place, says) in prefixes.enumerate() {
            if place < PREFIXES_PER_EVENT_MAX {
                Notification::Prefix { from, says }.send(cx, packet.rx);
            } else {
                left_out += 1;
            }
        }
        if left_out > 0 {
            cx.count(RouterDiscoveryDrop::PrefixesLeftOut, left_out);
        }
        self.notify_routes(cx, packet.rx, from, options);
        cx.count(RouterDiscoveryDrop::Told, 1);
        Ok(self.done)
    }
}

impl Advertisement {
    /// Tell of routes behind the router (RFC 4191 §2.3).
    fn notify_routes(
        &self,
        cx: &mut Context<'_>,
        rx: InterfaceId,
        from: Ipv6Addr,
        options: Options<'_>,
    ) {
        let mut told = 0;
        for option in options.iter() {
            let NdOption::Other { kind: option_kind::ROUTE_INFORMATION, data } = option else {
                continue;
            };
            match RouteSays::parse(data) {
                Some(says) if told < ROUTES_PER_EVENT_MAX => {
                    Notification::Route { from, says }.send(cx, rx);
                    told += 1;
                }
                Some(_) => cx.count(RouterDiscoveryDrop::RoutesLeftOut, 1),
                None => cx.count(RouterDiscoveryDrop::BadRoute, 1),
            }
        }
    }
}

impl Node for Advertisement {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        frame.route(|packet| self.decide(cx, packet));
    }
}

/// The declaration.
pub(crate) fn spec() -> NodeSpec {
    NodeSpec::new(NAME, "Hears what other routers say of themselves", |wiring| {
        Box::new(Advertisement {
            done: wiring.node(nodes::IP_DONE),
            bucket: TokenBucket::new(ADVERTISEMENTS_PER_SECOND, ADVERTISEMENTS_BURST),
        })
    })
    .reasons::<RouterDiscoveryDrop>()
    .describe(|record, names| {
        let from = icmp6::within(record.bytes()).map(|(header, _)| header.source().to_string());
        let from = from.unwrap_or_else(|| "somebody".to_owned());
        let rx = names.interface(record.rx);
        format!("{from} on {rx} says that it is a router, to {}", names.node(record.next))
    })
}
