//! The mobile user plane (RFC 9433): GTP-U becomes SRv6 and SRv6 becomes GTP-U, without state: the
//! session stands in the SID. One file for each behaviour, and beside them what they share.

mod args;
mod decapsulate;
mod echo;
mod encap_template;
mod encapsulate;
mod g_pdu;
mod gateway_entries;
mod gateways;
mod gtp4_d;
mod gtp4_e;
mod gtp6_d;
mod gtp6_e;
mod gtpu_header;
mod gtpu_message;
mod lookup_keys;
mod map;
mod messages;
mod mtu_check;

use std::sync::Arc;

use quiver_control::{Args, IpPrefix as Written, Refusal, Registry, order};
use quiver_tables::CountedLines;
use quiver_tables::prefix::{Ip6Prefix, Prefix};
use quiver_wire::gtpu::Direction;

use crate::local_sids::{Kind, Place};
use gateway_entries::GatewayTable;

pub use gtp4_d::MobileToSegments4;
pub use gtp4_e::SegmentsToMobile4;
pub use gtp6_d::MobileToSegments6;
pub use gtp6_e::SegmentsToMobile6;
pub use map::MapSegment;

pub(crate) use gateways::{POLICY_SYNTAX, add, delete, is_gateway, policy_rows};

/// The nodes that routes to these local SIDs lead to.
pub(crate) const LOCAL_NODES: [&str; 4] = [gtp4_e::NODE, gtp6_d::NODE, gtp6_e::NODE, map::NODE];

/// Register the nodes; returns what the command of local SIDs knows of them.
pub(crate) fn register(registry: &mut Registry, lines: &Arc<CountedLines>) -> Vec<Kind> {
    let rows = GatewayTable::new(&registry.graph);
    let Some(rows) = registry.require(rows) else { return Vec::new() };
    let workers = rows.workers();
    let graph = &mut registry.graph;
    graph.node(gtp4_d::spec(lines, &workers));
    graph.node(gtp6_d::spec(lines, &workers));
    graph.node(gtp4_e::spec(lines, workers.len()));
    graph.node(gtp6_e::spec(lines));
    graph.node(map::spec(lines));
    registry.running_config(order::ROUTES, gateways::write_config);
    registry.memory(gateway_entries::weigh);
    registry.on_start(move |engine| {
        engine.insert(rows);
        engine.insert(gateways::Gateways::default());
    });
    [&gtp4_e::KINDS[..], &gtp6_d::kinds(), &gtp6_e::KINDS, &map::KINDS].concat()
}

/// A prefix of a command behind which arguments find room: at most `longest` bits.
fn prefix_of(
    args: &Args<'_>,
    name: &str,
    written: Written,
    longest: u8,
    what: &str,
) -> Result<Ip6Prefix, Refusal> {
    if written.has_host_bits() {
        let refusal = args.refuse(name, format!("{written} has bits set behind its length"));
        return Err(refusal.remedy(format!("{} would be right", written.network())));
    }
    let std::net::IpAddr::V6(address) = written.address else {
        return Err(args.refuse(name, format!("{written} is no IPv6 prefix")));
    };
    if written.length > longest {
        let refusal = args.refuse(name, format!("{written} leaves no room for {what}"));
        return Err(refusal.remedy(format!("at most {longest} bits")));
    }
    Ok(Prefix::new(address.to_bits(), written.length))
}

/// Is there room for arguments behind a local SID's prefix?
fn check_length(place: Place, longest: u8, what: &str) -> Result<(), Refusal> {
    if place.prefix.len() <= longest {
        return Ok(());
    }
    let refusal = Refusal::new(format!("local SID {} leaves no room for {what}", place.sid()));
    Err(refusal.remedy(format!("a prefix of at most {longest} bits")))
}

/// Of the word `uplink`.
fn direction(args: &Args<'_>) -> Direction {
    if args.has("uplink") { Direction::Uplink } else { Direction::Downlink }
}

/// Of a part of a line.
#[inline(always)]
fn direction_of(is_uplink: u8) -> Direction {
    if is_uplink & 1 != 0 { Direction::Uplink } else { Direction::Downlink }
}

fn direction_words(direction: Direction) -> &'static str {
    if direction == Direction::Uplink { " uplink" } else { "" }
}
