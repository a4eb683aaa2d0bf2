//! The slow path of packets from B4s: the owner makes B4s with their first sessions, answers, and
//! reads fragments and ICMP errors. Packets come with their header of IPv6, so that a number never
//! outlives its B4 on the path to the owner.

use quiver_core::{Context, NodeId, Packet};
use quiver_forwarding::IcmpErrorRequest;
use quiver_sessions::KEY_WORDS;
use quiver_translation::flow::{Kind, classify_with};
use quiver_wire::ip4::address::is_unicast;
use quiver_wire::{Header, Ip4Header, Ip6Header};

use crate::icmp_error;
use crate::node::{Nat44Drop, TIME_EXCEEDED};
use crate::owner::{Side, SlowPath, is_last_hop, seconds};
use crate::softwires::answers::Softwire;
use crate::softwires::encapsulate::TunnelEnd;
use crate::softwires::input::{inner_at, open};
use crate::softwires::reasons::DsliteDrop;
use crate::softwires::table::NoB4;
use crate::softwires::{AFTR, B4Number};
use crate::tables::Rules;

/// RFC 792: nothing outside leads to the destination.
const NET_UNREACHABLE: IcmpErrorRequest = IcmpErrorRequest { kind: 3, code: 0, detail: 0 };

impl From<DsliteDrop> for Nat44Drop {
    fn from(why: DsliteDrop) -> Nat44Drop {
        match why {
            DsliteDrop::InnerWrong => Nat44Drop::InnerWrong,
            DsliteDrop::Congestion => Nat44Drop::InnerCongestion,
            DsliteDrop::Loop => Nat44Drop::TunnelLoop,
            DsliteDrop::NoHeadroom => Nat44Drop::NoHeadroom,
            _ => Nat44Drop::Truncated,
        }
    }
}

/// What packets of one flow from a B4 have in common, and those between the same two hosts: ports
/// of fragments are known only to the owner.
pub(crate) fn key(packet: &Packet) -> [u64; KEY_WORDS] {
    let b4 = Ip6Header::overlay(packet.bytes()).map_or(0, Ip6Header::source_bits);
    let inner = inner_at(packet.bytes()).and_then(|at| packet.bytes().get(at..));
    let inner = inner.and_then(Ip4Header::overlay);
    let ends = inner.map_or(0, |inner| {
        u64::from(inner.source_bits()) << 32 | u64::from(inner.destination_bits())
    });
    [b4 as u64, (b4 >> 64) as u64, ends, 0, 0]
}

impl SlowPath {
    /// A packet of IPv6 from a B4.
    pub(crate) fn receive_from_b4(
        &mut self,
        cx: &mut Context<'_>,
        packet: &mut Packet,
    ) -> Result<NodeId, Nat44Drop> {
        let shared = self.translator.shared.clone();
        let rules = shared.rules(cx.pass);
        let header = Ip6Header::overlay(packet.bytes()).ok_or(Nat44Drop::Truncated)?;
        let address = header.source_bits();
        if rules.aftr.address == 0 || header.destination_bits() != rules.aftr.address {
            return Err(Nat44Drop::NotEnabled);
        }
        let at = inner_at(packet.bytes()).ok_or(Nat44Drop::Truncated)?;
        open(packet, at)?;
        let header = Ip4Header::overlay(packet.bytes()).ok_or(Nat44Drop::Truncated)?;
        if !is_unicast(header.source()) || header.source_bits() == AFTR {
            return Err(Nat44Drop::InnerSource);
        }
        let to_aftr = header.destination_bits() == AFTR;
        let (b4, is_new) = self.b4(rules, address, seconds(cx.now_ns))?;
        let softwire = Softwire { end: TunnelEnd::of(rules), b4: address };
        let next = if to_aftr {
            self.answers.echo(packet, softwire)
        } else {
            self.enter(cx, packet, rules, (b4, softwire))
        };
        if is_new
            && let Some(owner) = &mut self.owner
            && let Some(softwires) = &mut owner.softwires
        {
            softwires.end_unused(b4);
        }
        next
    }

    /// The number of a B4, and whether it was made for this packet.
    fn b4(
        &mut self,
        rules: &Rules,
        address: u128,
        now_s: u32,
    ) -> Result<(B4Number, bool), Nat44Drop> {
        let owner = self.owner.as_mut().ok_or(Nat44Drop::NotEnabled)?;
        let softwires = owner.softwires.as_mut().ok_or(Nat44Drop::NotEnabled)?;
        if !softwires.may_be(&rules.aftr, address) {
            return Err(Nat44Drop::NotAdmitted);
        }
        if let Some(known) = softwires.number(address) {
            return Ok((known, false));
        }
        match softwires.make(address, rules.aftr.limit, now_s) {
            Ok(made) => Ok((made, true)),
            Err(NoB4::Full) => Err(Nat44Drop::B4sExceeded),
            Err(NoB4::PrefixFull) => Err(Nat44Drop::B4Limit),
        }
    }

    /// A packet of IPv4 from a host behind a B4.
    fn enter(
        &mut self,
        cx: &mut Context<'_>,
        packet: &mut Packet,
        rules: &Rules,
        (b4, softwire): (B4Number, Softwire),
    ) -> Result<NodeId, Nat44Drop> {
        let state = self.translator.softwire_state(cx, packet.rx, self.own);
        let header = Ip4Header::overlay(packet.bytes()).ok_or(Nat44Drop::Truncated)?;
        let destination = header.destination_bits();
        if header.is_fragment() && !self.fragments.note(packet, b4.table(), state.now_s) {
            return Err(Nat44Drop::FragmentWithoutFirst);
        }
        if is_last_hop(packet) {
            let about = (TIME_EXCEEDED, Nat44Drop::SoftwireTtl);
            return self.answers.error(cx, packet, softwire, about);
        }
        let (kind, flow) = classify_with(packet, b4.table(), state.has_calls);
        match kind {
            Kind::IcmpError => {
                let shared = self.translator.shared.clone();
                let sessions = shared.table().ok_or(Nat44Drop::NotEnabled)?;
                let table = icmp_error::translate(packet, b4.table(), sessions)?;
                cx.count(Nat44Drop::ErrorTranslated, 1);
                return Ok(self.translator.next(state, packet, table));
            }
            Kind::OtherIcmp => return Err(Nat44Drop::BadIcmpType),
            Kind::LostFragment => return Err(Nat44Drop::FragmentWithoutFirst),
            Kind::Truncated => return Err(Nat44Drop::Truncated),
            Kind::Data { .. } | Kind::Query { .. } => {}
        }
        if !self.translator.leads_outside_of_b4(rules, destination) {
            let about = (NET_UNREACHABLE, Nat44Drop::NotOutside);
            return self.answers.error(cx, packet, softwire, about);
        }
        let side = Side::Softwire(softwire);
        self.through_session(cx, packet, (rules, state), (kind, flow), side)
    }
}
