//! `icmp6-neighbor-advertisement`: a neighbour says which MAC address it has (RFC 4861 §7.2.5).

use std::net::IpAddr;

use quiver_core::node::{Node, NodeSpec};
use quiver_core::{Context, Frame, NodeId, Packet};
use quiver_wire::MacAddress;
use quiver_wire::icmp6::nd::{Message, NeighborFlags};

use super::discovery::{NdDrop, TELL_INTERVAL_NS, read};
use crate::notice::{Heard, Notice};
use crate::tables::IpTables;
use crate::throttle::{Recent, key};

struct Advertisement {
    tables: IpTables,
    done: NodeId,
    told: Recent,
}

impl Advertisement {
    fn decide(&mut self, cx: &mut Context<'_>, packet: &mut Packet) -> Result<NodeId, NdDrop> {
        let (_, message) = read(packet)?;
        let Message::NeighborAdvertisement { flags, target, options } = message else {
            return Err(NdDrop::BadMessage);
        };
        let own = self.tables.interfaces.addresses(packet.rx, cx.pass).ok_or(NdDrop::InterfaceDown)?;
        let Some(mac) = options.target_mac() else {
            cx.count(NdDrop::NoMac, 1);
            return Ok(self.done);
        };
        if !mac.is_unicast() {
            return Err(NdDrop::BadMac);
        }
        let address = IpAddr::V6(target);
        if own.has6(target) {
            if cx.interface(packet.rx).is_some_and(|row| MacAddress(row.mac) != mac) {
                Notice::Conflict { address, mac }.send(cx, packet.rx);
                return Err(NdDrop::Conflict);
            }
            return Ok(self.done);
        }
        if !own.is_on_link6(target) {
            return Err(NdDrop::NotOnLink);
        }
        let heard = match (flags.contains(NeighborFlags::SOLICITED), flags.contains(NeighborFlags::OVERRIDE))
        {
            (true, true) => Heard::Spoke,
            (false, true) => Heard::Overheard,
            (true, false) => Heard::Confirmed,
            (false, false) => return Ok(self.done),
        };
        let bits = target.to_bits();
        let words = [u64::from(packet.rx.0), bits as u64, (bits >> 64) as u64, mac.to_u64(), heard as u64];
        if self.told.may(key(&words), cx.now_ns) {
            Notice::Neighbour { address, mac, heard }.send(cx, packet.rx);
            cx.count(NdDrop::Learned, 1);
        } else {
            cx.count(NdDrop::KnownAlready, 1);
        }
        Ok(self.done)
    }
}

impl Node for Advertisement {
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        frame.route(|packet| self.decide(cx, packet));
    }
}

/// The declaration.
pub(crate) fn spec(tables: &IpTables) -> NodeSpec {
    let tables = tables.clone();
    NodeSpec::new(
        "icmp6-neighbor-advertisement",
        "Learns which MAC addresses neighbours have",
        move |wiring| {
            Box::new(Advertisement {
                tables: tables.clone(),
                done: wiring.node("ip-done"),
                told: Recent::new(TELL_INTERVAL_NS),
            })
        },
    )
    .reasons::<NdDrop>()
    .describe(|record, names| {
        format!("received on {}, to {}", names.interface(record.rx), names.node(record.next))
    })
}
