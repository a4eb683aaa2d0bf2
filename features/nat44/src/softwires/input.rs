//! `ip6-dslite` and `dslite-in2out`: packets of B4s. The route of the AFTR's address leads to the
//! first one, which looks up who has sent the packet; the second one takes the packet of IPv4 out
//! and translates it by its session. What is unusual goes to the slow path as it came.

use std::sync::Arc;

use quiver_core::cpu::Variant;
use quiver_core::graph::arc::ArcId;
use quiver_core::graph::node::{NodeSpec, Wiring};
use quiver_core::graph::stage::{LookUp, StageContext};
use quiver_core::memory::packet::PacketFlags;
use quiver_core::{Context, InterfaceId, NodeId, Packet};
use quiver_encap::decapsulated;
use quiver_forwarding::ip::{Ip4, Ip6, IpFamily};
use quiver_forwarding::nodes;
use quiver_tables::exact::NOT_FOUND;
use quiver_translation::flow::{End, Flow, Key, NO_KEY, icmp};
use quiver_wire::ip6::extension::upper_layer;
use quiver_wire::{Header, Ip6Header, IpProtocol};

use crate::node::{InterfaceState, SLOW_PATH, SlowRequest, Translator};
use crate::session::{Direction, Session};
use crate::softwires::B4Number;
use crate::softwires::errors::Relay;
use crate::softwires::reasons::DsliteDrop;
use crate::softwires::table::address_key;
use crate::tables::Shared;

/// The names of the nodes.
pub(crate) const INPUT: &str = "ip6-dslite";
pub(crate) const IN2OUT: &str = "dslite-in2out";

/// Where the packet of IPv4 in a packet of IPv6 begins; `None` when there is none, or when the
/// packet is a fragment, which is put together first (RFC 6333 §6.3).
pub(crate) fn inner_at(bytes: &[u8]) -> Option<usize> {
    let (header, behind) = Ip6Header::split(bytes)?;
    if header.next_header() == IpProtocol::IPV4 {
        return Some(Ip6Header::LEN);
    }
    let upper = upper_layer(header.next_header(), behind).ok()?;
    let is_whole = upper.fragment.is_none() && upper.protocol == IpProtocol::IPV4;
    is_whole.then_some(Ip6Header::LEN + upper.offset)
}

/// Leave the packet of IPv4 that begins at `at`.
///
/// # Errors
/// It is not whole or wrong, or it went round tunnels too often.
#[inline(always)]
pub(crate) fn open(packet: &mut Packet, at: usize) -> Result<(), DsliteDrop> {
    if decapsulated::ip4_fast::<Ip6>(packet, at).is_none() {
        decapsulated::ip4::<Ip6>(packet, at)?;
    }
    if !packet.turn() {
        return Err(DsliteDrop::Loop);
    }
    packet.clear(PacketFlags::L2_GROUP.union(PacketFlags::NOTED));
    packet.set_carried();
    Ok(())
}

struct Input {
    shared: Arc<Shared>,
    relay: Relay,
    in2out: NodeId,
    slow: NodeId,
    local: NodeId,
}

impl Input {
    /// All but a packet of IPv4 right behind the header of IPv6.
    #[cold]
    fn unusual(
        &self,
        context: StageContext<'_>,
        packet: &mut Packet,
    ) -> Result<NodeId, DsliteDrop> {
        if inner_at(packet.bytes()).is_some() {
            packet.hand_over(SlowRequest::Softwire);
            return Ok(self.slow);
        }
        let header = Ip6Header::overlay(packet.bytes()).ok_or(DsliteDrop::Truncated)?;
        if header.next_header() == IpProtocol::ICMP6
            && let Some(relayed) = self.relay.relay(context, packet)
        {
            return relayed;
        }
        packet.hand_over_nothing();
        Ok(self.local)
    }
}

impl LookUp for Input {
    const NAME: &'static str = INPUT;
    type Reason = DsliteDrop;
    type Key = Key;
    type Found = u32;
    type InterfaceState = ();

    fn interface_state(&self, _: &Context<'_>, _: InterfaceId) {}

    #[inline(always)]
    fn key(&self, (): (), packet: &mut Packet) -> Key {
        Ip6Header::overlay(packet.bytes())
            .map_or(NO_KEY, |header| address_key(header.source_bits()))
    }

    #[inline(always)]
    fn find(&self, variant: Variant, (): (), keys: &[Key], found: &mut [u32]) {
        match self.shared.softwires() {
            Some(readers) => readers.table.lookup_slice(variant, keys, found),
            None => found.fill(NOT_FOUND),
        }
    }

    #[inline(always)]
    fn resolve(
        &self,
        context: StageContext<'_>,
        (): (),
        _: Key,
        found: u32,
        packet: &mut Packet,
    ) -> Result<NodeId, DsliteDrop> {
        let header = Ip6Header::overlay(packet.bytes()).ok_or(DsliteDrop::Truncated)?;
        if header.next_header() != IpProtocol::IPV4 {
            return self.unusual(context, packet);
        }
        // The second key of a B4 is nobody's address.
        if found == NOT_FOUND || found & 1 != 0 {
            packet.hand_over(SlowRequest::Softwire);
            return Ok(self.slow);
        }
        packet.hand_over(B4Number(found >> 1));
        Ok(self.in2out)
    }
}

struct InToOut {
    translator: Translator,
    own: NodeId,
    slow: NodeId,
}

/// The key of a whole packet of IPv4 without options that a B4 sends. Those of others are `NO_KEY`:
/// the slow path reads them.
#[inline(always)]
fn key(bytes: &[u8], table: u32) -> Key {
    let head = bytes.get(Ip6Header::LEN..).and_then(<[u8]>::first_chunk::<28>);
    let Some(head) = head else { return NO_KEY };
    let parts = u16::from_be_bytes([head[6], head[7]]) & 0x3fff;
    if head[0] != 0x45 || parts != 0 {
        return NO_KEY;
    }
    let word = |at: usize| u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let short = |at: usize| u16::from_be_bytes([head[at], head[at + 1]]);
    let ports = match (IpProtocol(head[9]), head[20]) {
        (IpProtocol::TCP | IpProtocol::UDP, _) => (short(20), short(22)),
        (IpProtocol::ICMP, icmp::ECHO | icmp::ECHO_REPLY) => (short(24), short(24)),
        _ => return NO_KEY,
    };
    Flow {
        source: End { address: word(12), port: ports.0 },
        destination: End { address: word(16), port: ports.1 },
        protocol: IpProtocol(head[9]),
        table,
    }
    .key()
}

impl LookUp for InToOut {
    const NAME: &'static str = IN2OUT;
    const LOOKS_BEHIND: bool = true;
    type Reason = DsliteDrop;
    type Key = Key;
    type Found = u32;
    type InterfaceState = InterfaceState;

    fn interface_state(&self, cx: &Context<'_>, rx: InterfaceId) -> InterfaceState {
        // Packets are routed in the table outside, which is not this one.
        self.translator.softwire_state(cx, rx, self.own)
    }

    #[inline(always)]
    fn key(&self, _: InterfaceState, packet: &mut Packet) -> Key {
        let number: B4Number = packet.handed_over();
        key(packet.bytes(), number.table())
    }

    #[inline(always)]
    fn find(&self, variant: Variant, _: InterfaceState, keys: &[Key], found: &mut [u32]) {
        match self.translator.shared.table() {
            Some((table, _)) => table.lookup_slice(variant, keys, found),
            None => found.fill(NOT_FOUND),
        }
    }

    #[inline(always)]
    fn resolve(
        &self,
        _: StageContext<'_>,
        state: InterfaceState,
        _: Key,
        found: u32,
        packet: &mut Packet,
    ) -> Result<NodeId, DsliteDrop> {
        let ttl = packet.bytes().get(Ip6Header::LEN + 8).copied().unwrap_or(0);
        if found != NOT_FOUND
            && ttl > 1
            && let Some((_, objects)) = self.translator.shared.table()
            && let session = Session(objects.get(found >> 1))
            && !session.is_helped()
        {
            open(packet, Ip6Header::LEN)?;
            let direction = Direction::of_index(found);
            return Ok(self.translator.pass_on(state, packet, session, direction));
        }
        packet.hand_over(SlowRequest::Softwire);
        Ok(self.slow)
    }
}

/// A packet of either version in words.
pub(crate) fn describe(bytes: &[u8]) -> String {
    match bytes.first().map(|first| first >> 4) {
        Some(4) => <Ip4 as IpFamily>::describe(bytes),
        _ => <Ip6 as IpFamily>::describe(bytes),
    }
}

/// The declaration of the node that routes lead to.
pub(crate) fn spec(shared: &Arc<Shared>) -> NodeSpec {
    let shared = shared.clone();
    NodeSpec::look_up("Finds the B4 that has sent a packet to the AFTR", move |wiring| Input {
        shared: shared.clone(),
        relay: Relay::new(&shared, wiring),
        in2out: wiring.node(IN2OUT),
        slow: wiring.node(SLOW_PATH),
        local: wiring.node(nodes::ip6::LOCAL),
    })
    .describe(|record, names| {
        format!("{}, to {}", describe(record.bytes()), names.node(record.next))
    })
}

/// The declaration of the node that translates.
pub(crate) fn in2out_spec(arc: ArcId, shared: &Arc<Shared>) -> NodeSpec {
    let shared = shared.clone();
    let help = "Takes packets of IPv4 out of those of B4s, and translates them by their sessions";
    NodeSpec::look_up(help, move |wiring: &Wiring<'_>| InToOut {
        translator: Translator::new(&shared, arc, wiring),
        own: wiring.id,
        slow: wiring.node(SLOW_PATH),
    })
    .describe(|record, names| {
        format!("{}, to {}", describe(record.bytes()), names.node(record.next))
    })
}
