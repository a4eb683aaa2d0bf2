//! The control plane (RFC 9301): mappings are requested from map resolvers and learned, and requests
//! for the EIDs of this site are answered.

use std::collections::BTreeMap;
use std::net::IpAddr;

use quiver_control::IpPrefix;
use quiver_core::worker::Worker;
use quiver_core::{Engine, InterfaceId, WorkerId};
use quiver_forwarding::fib::Family;
use quiver_wire::checksum::header_checksum;
use quiver_wire::ip6::extension::upper_layer;
use quiver_wire::lisp::CONTROL_PORT;
use quiver_wire::udp::{fill_checksum_over_ip4, fill_checksum_over_ip6};
use quiver_wire::{Header, Ip4Header, Ip6Header, IpProtocol, UdpHeader};

use crate::config::{self, State};
use crate::database::{Action, Eid, Mapping};
use crate::input::Arrivals;
use crate::message::{MapReply, MapRequest, Message, Record, encapsulated};
use crate::request::{self, Wish};

/// Requests that wait for a reply at most.
pub const PENDING_MAX: usize = 1_024;
/// A request without a reply is sent again so often.
const TRIES_MAX: u32 = 3;
const RETRY_NS: u64 = 1_000_000_000;
/// How often time-outs are looked for.
const TICK_NS: u64 = 500_000_000;
/// Mappings of this site are valid so long, minutes (RFC 9301 §5.4 recommends a day).
const TTL_MINUTES: u32 = 1_440;
/// No learned mapping is valid longer, minutes.
const TTL_MINUTES_MAX: u32 = 1_440;
const MINUTE_NS: u64 = 60_000_000_000;
/// Messages that are read in a turn.
const MESSAGES_PER_TURN: usize = 64;
/// Hops of what is sent.
const HOP_LIMIT: u8 = 64;

/// A request that waits for its reply.
#[derive(Clone, Copy, Debug)]
struct Pending {
    wish: Wish,
    due_ns: u64,
    tries: u32,
}

/// What was sent and received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Requests sent, with repetitions.
    pub requests_sent: u64,
    /// Replies to own requests.
    pub replies_received: u64,
    /// Replies that nobody has asked for, or that say too much.
    pub replies_refused: u64,
    /// Requests for EIDs of this site.
    pub requests_received: u64,
    /// Replies sent.
    pub replies_sent: u64,
    /// Messages that could not be read.
    pub malformed: u64,
}

/// The control plane.
#[derive(Default)]
pub struct Control {
    pending: BTreeMap<u64, Pending>,
    /// What was sent and received.
    pub counts: Counts,
}

/// A datagram in an IP packet.
struct Datagram<'p> {
    source: IpAddr,
    destination: IpAddr,
    source_port: u16,
    payload: &'p [u8],
}

/// The datagram to the control port that a packet holds, whole and in one piece.
fn datagram(packet: &[u8]) -> Option<Datagram<'_>> {
    let (source, destination, upper) = match packet.first()? >> 4 {
        4 => {
            let header = Ip4Header::overlay(packet)?;
            let is_it = header.protocol() == IpProtocol::UDP && !header.is_fragment();
            let upper = packet.get(header.header_len()..header.total_length().into());
            let ends = (IpAddr::from(header.source()), IpAddr::from(header.destination()));
            (ends.0, ends.1, upper.filter(|_| is_it)?)
        }
        6 => {
            let (header, behind) = Ip6Header::split(packet)?;
            let behind = behind.get(..header.payload_length().into())?;
            let upper = upper_layer(header.next_header(), behind).ok()?;
            let ends = (IpAddr::from(header.source()), IpAddr::from(header.destination()));
            let is_it = upper.protocol == IpProtocol::UDP;
            (ends.0, ends.1, behind.get(upper.offset..).filter(|_| is_it)?)
        }
        _ => return None,
    };
    let (header, _) = UdpHeader::split(upper)?;
    let payload = upper.get(UdpHeader::LEN..header.length().into())?;
    let source_port = header.source_port();
    (header.destination_port() == CONTROL_PORT).then_some(Datagram {
        source,
        destination,
        source_port,
        payload,
    })
}

/// A packet with a datagram; `None` when the addresses are of two families or it is too long.
fn packet(from: IpAddr, to: IpAddr, port: u16, payload: &[u8]) -> Option<Vec<u8>> {
    let udp_len = UdpHeader::LEN + payload.len();
    let ip_len = if from.is_ipv4() { Ip4Header::LEN } else { Ip6Header::LEN };
    let mut out = vec![0; ip_len + udp_len];
    let (front, datagram) = out.split_at_mut(ip_len);
    UdpHeader::new(CONTROL_PORT, port, payload.len())?.write(datagram).ok()?;
    datagram.get_mut(UdpHeader::LEN..)?.copy_from_slice(payload);
    match (from, to) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            let mut header = Ip4Header::new(from, to, IpProtocol::UDP, HOP_LIMIT, udp_len)?;
            header.set_checksum(0);
            header.set_checksum(header_checksum(&header));
            header.write(front).ok()?;
            fill_checksum_over_ip4(from, to, datagram);
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            let length = u16::try_from(udp_len).ok()?;
            Ip6Header::new(from, to, IpProtocol::UDP, HOP_LIMIT, length).write(front).ok()?;
            fill_checksum_over_ip6(from, to, datagram);
        }
        _ => return None,
    }
    Some(out)
}

/// Send a packet by the routes of table 0.
fn send(engine: &mut Engine, bytes: Vec<u8>) {
    let name =
        if bytes.first().is_some_and(|byte| byte >> 4 == 4) { "ip4-lookup" } else { "ip6-lookup" };
    let Some(node) = engine.node_id(name) else { return };
    // Without a buffer the request is sent again.
    let _ = engine.post(WorkerId(0), move |worker: &mut Worker| {
        worker.inject(&bytes, node, InterfaceId::NONE, InterfaceId::NONE);
    });
}

/// A number that nobody can guess (RFC 9301 §5.2).
fn nonce() -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    RandomState::new().build_hasher().finish()
}

/// The prefix of one address.
fn host(address: IpAddr) -> IpPrefix {
    IpPrefix { address, length: if address.is_ipv4() { 32 } else { 128 } }
}

impl Control {
    /// Request the mapping of an address, unless it is requested already.
    fn request(&mut self, engine: &mut Engine, state: &State, wish: Wish) {
        let is_pending = self.pending.values().any(|pending| pending.wish == wish);
        if is_pending || self.pending.len() >= PENDING_MAX || state.database.resolvers.is_empty() {
            return;
        }
        let (nonce, due_ns) = (nonce(), engine.now_ns() + RETRY_NS);
        self.pending.insert(nonce, Pending { wish, due_ns, tries: 1 });
        self.send_request(engine, state, nonce, wish);
    }

    fn send_request(&mut self, engine: &mut Engine, state: &State, nonce: u64, wish: Wish) {
        let sources = state.sources();
        let message = MapRequest {
            nonce,
            is_probe: false,
            solicits: false,
            itr_locators: sources.into_iter().flatten().collect(),
            eids: vec![Eid::new(wish.vni, host(wish.address))],
        };
        if message.itr_locators.is_empty() {
            return;
        }
        let of = |address: IpAddr| sources[Family::of(address) as usize];
        for resolver in &state.database.resolvers {
            let Some(from) = of(*resolver) else { continue };
            // The EID is the destination inside, where there is a source of its family.
            let (inner_from, inner_to) = match of(wish.address) {
                Some(source) => (source, wish.address),
                None => (from, *resolver),
            };
            let inner = packet(inner_from, inner_to, CONTROL_PORT, &message.write());
            let outer = inner
                .and_then(|inner| packet(from, *resolver, CONTROL_PORT, &encapsulated(&inner)));
            if let Some(outer) = outer {
                self.counts.requests_sent += 1;
                send(engine, outer);
            }
        }
    }

    /// A packet with a message has come.
    fn receive(&mut self, engine: &mut Engine, state: &mut State, bytes: &[u8]) {
        let Some(outer) = datagram(bytes) else {
            self.counts.malformed += 1;
            return;
        };
        match Message::read(outer.payload) {
            Ok(Message::Reply(reply)) => self.take_reply(engine, state, &reply),
            Ok(Message::Request(request)) => self.answer(engine, state, &outer, &request),
            Ok(Message::Encapsulated(inner)) => {
                let inner = datagram(&inner);
                let read = inner.as_ref().map(|inner| Message::read(inner.payload));
                match (inner, read) {
                    (Some(inner), Some(Ok(Message::Request(request)))) => {
                        self.answer(engine, state, &inner, &request);
                    }
                    _ => self.counts.malformed += 1,
                }
            }
            Err(_) => self.counts.malformed += 1,
        }
    }

    /// A reply is believed when its nonce is that of a request (RFC 9301 §5.4), the address asked
    /// for lies in its prefix, and the prefix in one for which requests are sent: a reply cannot
    /// take more than the operator has given to LISP.
    fn take_reply(&mut self, engine: &mut Engine, state: &mut State, reply: &MapReply) {
        let Some(pending) = self.pending.remove(&reply.nonce) else {
            self.counts.replies_refused += 1;
            return;
        };
        let wanted = Eid::new(pending.wish.vni, host(pending.wish.address));
        let within: Vec<Eid> =
            state.database.requested().filter(|eid| eid.covers(&wanted)).copied().collect();
        let is_good = |record: &&Record| {
            let inside = within.iter().any(|eid| eid.covers(&record.eid) && *eid != record.eid);
            record.eid.covers(&wanted) && inside
        };
        let Some(record) = reply.records.iter().find(is_good) else {
            self.counts.replies_refused += 1;
            return;
        };
        self.counts.replies_received += 1;
        let minutes = record.ttl_minutes.min(TTL_MINUTES_MAX);
        let mapping = (minutes > 0).then(|| Mapping {
            locators: record.locators.clone(),
            action: record.action,
            expires_ns: Some(engine.now_ns() + u64::from(minutes) * MINUTE_NS),
        });
        config::learn(engine, state, record.eid, mapping);
    }

    /// Answer what is asked of the EIDs of this site.
    fn answer(
        &mut self,
        engine: &mut Engine,
        state: &mut State,
        from: &Datagram<'_>,
        request: &MapRequest,
    ) {
        self.counts.requests_received += 1;
        if !state.database.is_enabled {
            return;
        }
        if request.solicits {
            return self.solicited(engine, state, request);
        }
        let record = |eid: &Eid| {
            let (eid, set) = state.database.local_with(eid.vni, eid.prefix.address)?;
            let locators = config::locators_of(engine, &state.database, set);
            let (ttl_minutes, action) = (TTL_MINUTES, Action::None);
            Some(Record { ttl_minutes, action, is_authoritative: true, eid, locators })
        };
        let records: Vec<Record> = request.eids.iter().filter_map(record).collect();
        if records.is_empty() {
            return;
        }
        let reply = MapReply { nonce: request.nonce, is_probe: request.is_probe, records };
        let sources = state.sources();
        let to = request.itr_locators.iter().chain([&from.source]).find_map(|to| {
            let own = sources[Family::of(*to) as usize]?;
            // A probe is answered from the locator that it probes.
            let probed = request.is_probe && Family::of(from.destination) == Family::of(*to);
            Some((if probed { from.destination } else { own }, *to))
        });
        let bytes = to.and_then(|(own, to)| packet(own, to, from.source_port, &reply.write()));
        if let Some(bytes) = bytes {
            self.counts.replies_sent += 1;
            send(engine, bytes);
        }
    }

    /// A site says that its mapping has changed (RFC 9301 §6.1): it is requested again.
    fn solicited(&mut self, engine: &mut Engine, state: &State, request: &MapRequest) {
        for eid in &request.eids {
            let known = state.database.learned.keys().find(|known| known.covers(eid));
            if known.is_some() {
                let wish = Wish { vni: eid.vni, address: eid.prefix.address };
                self.request(engine, state, wish);
            }
        }
    }

    /// Send requests again, and forget what has expired.
    fn tick(&mut self, engine: &mut Engine, state: &mut State) {
        let now_ns = engine.now_ns();
        let due = self.pending.iter().filter(|(_, pending)| pending.due_ns <= now_ns);
        for (nonce, pending) in due.map(|(nonce, pending)| (*nonce, *pending)).collect::<Vec<_>>() {
            if pending.tries >= TRIES_MAX {
                self.pending.remove(&nonce);
                continue;
            }
            let (due_ns, tries) = (now_ns + RETRY_NS, pending.tries + 1);
            self.pending.insert(nonce, Pending { due_ns, tries, ..pending });
            self.send_request(engine, state, nonce, pending.wish);
        }
        let is_old =
            |mapping: &Mapping| mapping.expires_ns.is_some_and(|expires| expires <= now_ns);
        let old = state.database.learned.iter().filter(|(_, mapping)| is_old(mapping));
        for eid in old.map(|(eid, _)| *eid).collect::<Vec<_>>() {
            config::learn(engine, state, eid, None);
        }
    }
}

/// Do something with both states.
fn with(engine: &mut Engine, work: impl FnOnce(&mut Engine, &mut Control, &mut State)) {
    engine.with(|engine, control: &mut Control| {
        engine.with(|engine, state: &mut State| work(engine, control, state));
    });
}

/// Read what workers have received.
pub(crate) fn fetch(engine: &mut Engine, arrived: &mut Arrivals) {
    if arrived.is_empty() {
        return;
    }
    with(engine, |engine, control, state| {
        for arrival in std::iter::from_fn(|| arrived.take()).take(MESSAGES_PER_TURN) {
            control.receive(engine, state, arrival.bytes());
        }
    });
}

/// Keep the state, and follow packets without a mapping, and time.
pub(crate) fn start(engine: &mut Engine) {
    engine.insert(Control::default());
    for family in [Family::Ip4, Family::Ip6] {
        engine.on_event(request::node(family), move |engine, event| {
            let Some(wish) = Wish::read(family, event.bytes()) else { return };
            with(engine, |engine, control, state| control.request(engine, state, wish));
        });
    }
    engine.every(TICK_NS, |engine| {
        with(engine, |engine, control, state| control.tick(engine, state));
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_datagram_is_read_as_it_is_written() {
        for (from, to) in [("192.0.2.1", "192.0.2.2"), ("2001:db8::1", "2001:db8::2")] {
            let (from, to) = (from.parse().expect("one"), to.parse().expect("another"));
            let bytes = packet(from, to, CONTROL_PORT, b"hello").expect("short");
            let read = datagram(&bytes).expect("a datagram");
            assert_eq!((read.source, read.destination, read.payload), (from, to, &b"hello"[..]));
            assert!(datagram(&bytes[..bytes.len() - 1]).is_none());
            assert!(packet(from, to, 9, b"").is_some_and(|bytes| datagram(&bytes).is_none()));
        }
        assert!(packet([1, 2, 3, 4].into(), "::1".parse().expect("six"), 9, b"").is_none());
    }
}
