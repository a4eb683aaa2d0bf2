//! Pings of the router's own: requests that a worker sends, answers that nodes tell of.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use quiver_control::{Job, Output, Refusal, Sink, Step};
use quiver_core::worker::Worker;
use quiver_core::{Engine, InterfaceId, NodeId, WorkerId};
use quiver_forwarding::fib::{Family, Fib};
use quiver_forwarding::next_hop_group::Hop;
use quiver_forwarding::nodes;
use quiver_wire::icmp4::{self, unreachable};
use quiver_wire::ip6::address::is_link_local;
use quiver_wire::{Header, Ip6Header, IpProtocol, icmp6, ip4};
use serde_json::json;

use crate::local::pending_pings::{PINGS_MAX, WaitingPings};
use crate::notifications::{Answer, Notification, PingError};
use crate::state::IpState;

/// How long the last answer is waited for.
const PATIENCE_NS: u64 = 1_000_000_000;
/// How often answers are looked for while some are missing.
const LOOK: Duration = Duration::from_millis(2);
/// The shortest time between two requests.
const INTERVAL_S_MIN: f64 = 0.001;
/// Tables that a destination is followed through.
const TABLES_FOLLOWED_MAX: usize = 16;

/// What is asked for.
pub(crate) struct Wish {
    /// Whom to ask.
    pub address: IpAddr,
    /// From which interface.
    pub source: Option<InterfaceId>,
    /// By the routes of which table, by its number among operators, when no interface says it.
    pub table: Option<u32>,
    /// How often.
    pub repeat: u64,
    /// Bytes of data.
    pub size_bytes: usize,
    /// Seconds from one request, or burst of them, to the next.
    pub interval_s: f64,
    /// Requests that are sent at once.
    pub burst: u64,
    /// Nobody may cut it into fragments.
    pub whole: bool,
}

/// Something that came back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrived {
    pub sequence: u16,
    pub from: IpAddr,
    pub answer: Answer,
    hops: u8,
    bytes: u16,
    pub at_ns: u64,
}

type Mailbox = Mutex<VecDeque<Arrived>>;

/// Where answers are put for the pings that wait.
#[derive(Default)]
pub(crate) struct Mailboxes {
    boxes: Vec<(u16, Weak<Mailbox>)>,
    last: u16,
}

impl Mailboxes {
    /// A new ping's identifier and mailbox.
    fn open(&mut self) -> (u16, Arc<Mailbox>) {
        self.boxes.retain(|(_, mailbox)| mailbox.strong_count() > 0);
        loop {
            self.last = self.last.wrapping_add(1);
            if self.boxes.iter().all(|(identifier, _)| *identifier != self.last) {
                break;
            }
        }
        let mailbox = Arc::new(Mailbox::default());
        self.boxes.push((self.last, Arc::downgrade(&mailbox)));
        (self.last, mailbox)
    }

    /// Put an answer into its mailbox.
    pub fn deliver(&mut self, notice: Notification, at_ns: u64) {
        let Notification::Ping { identifier, sequence, from, answer, hops, bytes } = notice else {
            return;
        };
        let open = self.boxes.iter().find(|(known, _)| *known == identifier);
        if let Some(mailbox) = open.and_then(|(_, mailbox)| mailbox.upgrade()) {
            let mut mailbox = mailbox.lock().unwrap_or_else(PoisonError::into_inner);
            mailbox.push_back(Arrived { sequence, from, answer, hops, bytes, at_ns });
        }
    }
}

/// A ping under way.
pub(crate) struct Ping {
    ends: Ends,
    size_bytes: usize,
    whole: bool,
    interval_ns: u64,
    burst: u64,
    left: u64,
    sequence: u16,
    next_ns: u64,
    /// When each request that is not answered yet was sent.
    unanswered: Vec<(u16, u64)>,
    /// Requests that were too long to be sent, and what the path takes, not told yet.
    too_long: Vec<(u16, u16)>,
    sent: u64,
    round_trips_ns: Vec<u64>,
    errors: u64,
    begun: bool,
}

/// Both ends of echo requests: where they go, as whom, by which table, and who hears the answers.
pub(crate) struct Ends {
    pub address: IpAddr,
    pub from: IpAddr,
    /// What the packets seem to have come by: decides the table.
    rx: InterfaceId,
    /// The table that they are looked up in.
    table: u32,
    lookup: NodeId,
    identifier: u16,
    mailbox: Arc<Mailbox>,
    waiting: Arc<WaitingPings>,
}

impl Drop for Ends {
    fn drop(&mut self) {
        self.waiting.end(self.identifier);
    }
}

impl Ends {
    /// See that the destination can be reached, and choose the source.
    pub fn open(
        engine: &mut Engine,
        address: IpAddr,
        source: Option<InterfaceId>,
        table: Option<u32>,
        command: &str,
    ) -> Result<Ends, Refusal> {
        let family = Family::of(address);
        if matches!(address, IpAddr::V6(six) if is_link_local(six)) && source.is_none() {
            let what = format!("{address} is link-local: it means nothing without an interface");
            return Err(Refusal::new(what).remedy(format!("{command} {address} source IF")));
        }
        let (rx, table) = match (source, table) {
            (None, Some(id)) if id != 0 => interface_in(engine, family, id)?,
            _ => (source.unwrap_or(InterfaceId::NONE), lookup_table(engine, source, family)),
        };
        let from = match source {
            Some(interface) => interface_source(engine, interface, address)?,
            None => route_source(engine, family, table, address)?,
        };
        let lookup = if address.is_ipv4() { nodes::ip4::LOOKUP } else { nodes::ip6::LOOKUP };
        let lookup = engine
            .node_id(lookup)
            .ok_or_else(|| Refusal::new(format!("{lookup} is not built in")))?;
        let ip = engine.get_mut::<IpState>().ok_or_else(|| Refusal::new("IP is being changed"))?;
        let (identifier, mailbox) = ip.mailboxes.open();
        let waiting = ip.pings.clone();
        if !waiting.begin(identifier) {
            let what = format!("{PINGS_MAX} pings are under way already");
            return Err(Refusal::new(what).remedy("wait until one of them is done"));
        }
        Ok(Ends { address, from, rx, table, lookup, identifier, mailbox, waiting })
    }

    /// An echo request, from its IP header on.
    pub fn request(
        &self,
        sequence: u16,
        data: &[u8],
        whole: bool,
        hops: Option<u8>,
    ) -> Option<Vec<u8>> {
        let identifier = self.identifier;
        match (self.from, self.address) {
            (IpAddr::V4(from), IpAddr::V4(to)) => {
                let message = icmp4::Message::EchoRequest { identifier, sequence };
                let repr = icmp4::Repr { message, data };
                let mut ip = ip4::Repr {
                    identification: sequence,
                    dont_fragment: whole,
                    ..ip4::Repr::new(from, to, IpProtocol::ICMP, repr.len())
                };
                ip.ttl = hops.unwrap_or(ip.ttl);
                let mut bytes = vec![0; ip.header_len() + repr.len()];
                let at = ip.emit(&mut bytes).ok()?;
                repr.emit(bytes.get_mut(at..)?).ok()?;
                Some(bytes)
            }
            (IpAddr::V6(from), IpAddr::V6(to)) => {
                let message = icmp6::Message::EchoRequest { identifier, sequence, data };
                let mut bytes = vec![0; Ip6Header::LEN + icmp6::Icmp6Header::LEN + data.len()];
                let length = message.emit(from, to, bytes.get_mut(Ip6Header::LEN..)?).ok()?;
                let hops = hops.unwrap_or(crate::ip6::HOP_LIMIT);
                let header = Ip6Header::new(from, to, IpProtocol::ICMP6, hops, length as u16);
                header.write(&mut bytes).ok()?;
                Some(bytes)
            }
            _ => None,
        }
    }

    /// Have a worker send packets through the graph, as the router's own.
    pub fn send(&self, engine: &mut Engine, packets: Vec<Vec<u8>>) {
        let (lookup, rx) = (self.lookup, self.rx);
        engine.post(WorkerId(0), move |worker: &mut Worker| {
            for bytes in &packets {
                worker.inject(bytes, lookup, rx, InterfaceId::NONE);
            }
        });
    }

    /// What has come back since this was last asked.
    pub fn arrived(&self) -> Vec<Arrived> {
        self.mailbox.lock().unwrap_or_else(PoisonError::into_inner).drain(..).collect()
    }
}

/// An interface whose packets are looked up in a table, for those that have none of their own.
fn interface_in(engine: &Engine, family: Family, id: u32) -> Result<(InterfaceId, u32), Refusal> {
    let fib =
        engine.get::<Fib>().ok_or_else(|| Refusal::new("the forwarding table is being changed"))?;
    let index = fib.table_index(family, id).ok_or_else(|| {
        Refusal::new(format!("there is no {family} table {id}"))
            .remedy(format!("ip table add {id}"))
    })?;
    let mut own = engine.get::<IpState>().into_iter().flat_map(|ip| &ip.interfaces);
    let found =
        own.find(|(_, own)| index == if family == Family::Ip4 { own.table4 } else { own.table6 });
    found.map(|(interface, _)| (*interface, index)).ok_or_else(|| {
        Refusal::new(format!("no interface is in {family} table {id}, so nobody can speak there"))
    })
}

/// See that the destination can be reached, and choose the source.
pub(crate) fn begin(engine: &mut Engine, wish: &Wish) -> Result<Ping, Refusal> {
    Ok(Ping {
        ends: Ends::open(engine, wish.address, wish.source, wish.table, "ping")?,
        size_bytes: wish.size_bytes,
        whole: wish.whole,
        interval_ns: (wish.interval_s.clamp(INTERVAL_S_MIN, 3600.0) * 1e9) as u64,
        burst: wish.burst.max(1),
        left: wish.repeat,
        sequence: 0,
        next_ns: 0,
        unanswered: Vec::new(),
        too_long: Vec::new(),
        sent: 0,
        round_trips_ns: Vec::new(),
        errors: 0,
        begun: false,
    })
}

/// The table in which packets that seem to have come by `source` are looked up.
fn lookup_table(engine: &Engine, source: Option<InterfaceId>, family: Family) -> u32 {
    let own = source.and_then(|id| engine.get::<IpState>()?.interfaces.get(&id));
    own.map_or(0, |own| match family {
        Family::Ip4 => own.table4,
        Family::Ip6 => own.table6,
    })
}

/// An address of `interface` to speak to `address` with.
fn interface_source(
    engine: &Engine,
    interface: InterfaceId,
    address: IpAddr,
) -> Result<IpAddr, Refusal> {
    let own = engine.get::<IpState>().map(|ip| ip.addresses(interface)).unwrap_or_default();
    let source = match address {
        IpAddr::V4(address) => own.source4(address).map(IpAddr::V4),
        IpAddr::V6(address) => own.source6(address).map(IpAddr::V6),
    };
    source.ok_or_else(|| {
        let (name, family) = (engine.interface_name(interface), Family::of(address));
        Refusal::new(format!("interface {name} has no {family} address to ping {address} from"))
            .remedy(format!("set interface ip address {name} ADDR/LEN"))
    })
}

/// The address of the interface that a table sends packets to `address` out of.
fn route_source(
    engine: &Engine,
    family: Family,
    mut table: u32,
    address: IpAddr,
) -> Result<IpAddr, Refusal> {
    let no_route = |why: &str| Refusal::new(format!("{address} cannot be reached: {why}"));
    let fib =
        engine.get::<Fib>().ok_or_else(|| Refusal::new("the forwarding table is being changed"))?;
    for _ in 0..TABLES_FOLLOWED_MAX {
        let hop: Hop = fib
            .best_route(table, address)
            .and_then(|route| route.hops.first().map(|(hop, _)| *hop))
            .ok_or_else(|| {
                no_route("there is no route to it").remedy("ip route add PREFIX via NEXT-HOP")
            })?;
        match engine.node_name(hop.next).as_str() {
            nodes::ip4::LOCAL | nodes::ip6::LOCAL => return Ok(address),
            nodes::ip4::LOOKUP_IN_TABLE | nodes::ip6::LOOKUP_IN_TABLE => table = hop.index,
            nodes::ip4::DROP | nodes::ip6::DROP => {
                return Err(no_route("its route drops, or no path of it can be used"));
            }
            _ => {
                let out = fib.adjacencies().get(hop.index).tx;
                if engine.interface(out).is_none() {
                    return Err(no_route("its route leads into a feature; name the source"));
                }
                return interface_source(engine, out, address);
            }
        }
    }
    Err(no_route(&format!("its {family} tables look each other up without end")))
}

impl Ping {
    /// The next request, from its IP header on.
    fn request(&self) -> Option<Vec<u8>> {
        let data: Vec<u8> = (0..self.size_bytes).map(|place| place as u8).collect();
        self.ends.request(self.sequence, &data, self.whole, None)
    }

    fn send(&mut self, engine: &mut Engine, now_ns: u64) {
        self.sequence = self.sequence.wrapping_add(1);
        self.left -= 1;
        self.sent += 1;
        self.next_ns = now_ns + self.interval_ns;
        let Some(bytes) = self.request() else { return };
        let mtu_bytes = self.mtu_bytes(engine);
        if self.whole && bytes.len() > usize::from(mtu_bytes) {
            self.errors += 1;
            self.too_long.push((self.sequence, mtu_bytes));
            return;
        }
        let packets = self.cut(bytes, mtu_bytes);
        self.ends.send(engine, packets);
        self.unanswered.push((self.sequence, now_ns));
    }

    /// The longest packet that may be sent: as the first link takes it, and routers on the way have
    /// told.
    fn mtu_bytes(&self, engine: &Engine) -> u16 {
        let learned =
            engine.get::<IpState>().and_then(|ip| ip.path_mtu(self.ends.table, self.ends.address));
        let first = first_link_mtu(engine, self.ends.table, self.ends.address);
        first.into_iter().chain(learned).min().unwrap_or(u16::MAX)
    }

    /// In fragments, where only the sender makes them (RFC 8200 §4.5).
    fn cut(&self, bytes: Vec<u8>, mtu_bytes: u16) -> Vec<Vec<u8>> {
        if bytes.len() <= usize::from(mtu_bytes) || self.ends.address.is_ipv4() {
            return vec![bytes];
        }
        let identification = u32::from(self.ends.identifier) << 16 | u32::from(self.sequence);
        fragments(&bytes, mtu_bytes, identification).unwrap_or_default()
    }

    /// A router says that a packet of ours was too long: only when it is about one that was sent,
    /// and not answered, is it believed (RFC 8201 §4).
    fn learn_path(&self, engine: &mut Engine, error: &PingError) {
        let sent_bytes =
            self.request().map_or(0, |bytes| bytes.len().min(self.mtu_bytes(engine).into()));
        let now_ns = engine.now_ns();
        if error.about == self.ends.address
            && let Some(ip) = engine.get_mut::<IpState>()
        {
            ip.path_mtus.learn(
                (self.ends.table, self.ends.address),
                error.mtu_bytes,
                sent_bytes,
                now_ns,
            );
        }
    }

    /// Say what has come back.
    fn report(&mut self, engine: &mut Engine, sink: &mut dyn Sink) {
        for (sequence, mtu_bytes) in self.too_long.drain(..) {
            sink.line(&format!(
                "icmp_seq={sequence} is not sent: it is longer than the path takes, {mtu_bytes} \
                 bytes"
            ));
        }
        for answer in self.ends.arrived() {
            let waiting =
                self.unanswered.iter().position(|(sequence, _)| *sequence == answer.sequence);
            let Some(sent_ns) = waiting.map(|place| self.unanswered.swap_remove(place).1) else {
                sink.line(&format!("{} answered icmp_seq={} again", answer.from, answer.sequence));
                continue;
            };
            match answer.answer {
                Answer::Reply => {
                    let round_trip_ns = answer.at_ns.saturating_sub(sent_ns);
                    self.round_trips_ns.push(round_trip_ns);
                    sink.line(&format!(
                        "{} bytes from {}: icmp_seq={} ttl={} time={:.3} ms",
                        answer.bytes,
                        answer.from,
                        answer.sequence,
                        answer.hops,
                        round_trip_ns as f64 / 1e6
                    ));
                }
                Answer::Error(error) => {
                    self.errors += 1;
                    let (kind, code) = (error.kind, error.code);
                    if is_too_big(answer.from, kind, code) {
                        self.learn_path(engine, &error);
                    }
                    let what = error_words(answer.from, kind, code);
                    sink.line(&format!(
                        "from {}: icmp_seq={} {what}",
                        answer.from, answer.sequence
                    ));
                }
            }
        }
    }

    fn summary(&self) -> Output {
        let received = self.round_trips_ns.len() as u64;
        let lost = self.sent - received.min(self.sent);
        let loss_percent = 100.0 * lost as f64 / self.sent.max(1) as f64;
        let mut text =
            format!("{} sent, {received} received, {loss_percent:.0}% packet loss", self.sent);
        if self.errors > 0 {
            text += &format!(", {} errors", self.errors);
        }
        let ms = |ns: u64| ns as f64 / 1e6;
        let mut json = json!({
            "sent": self.sent, "received": received, "errors": self.errors,
            "loss_percent": loss_percent,
        });
        if let (Some(min), Some(max)) =
            (self.round_trips_ns.iter().min(), self.round_trips_ns.iter().max())
        {
            let mean = ms(self.round_trips_ns.iter().sum::<u64>()) / received as f64;
            text +=
                &format!("; round trip min/avg/max {:.3}/{mean:.3}/{:.3} ms", ms(*min), ms(*max));
            json["min_ms"] = json!(ms(*min));
            json["avg_ms"] = json!(mean);
            json["max_ms"] = json!(ms(*max));
        }
        Output::both(text, json)
    }
}

/// Does this error say that a packet was too long?
fn is_too_big(from: IpAddr, kind: u8, code: u8) -> bool {
    match from {
        IpAddr::V4(_) => {
            (kind, code)
                == (icmp4::kind::DESTINATION_UNREACHABLE, unreachable::FRAGMENTATION_NEEDED)
        }
        IpAddr::V6(_) => kind == icmp6::kind::PACKET_TOO_BIG,
    }
}

/// The MTU of the link by which packets to `address` leave; `None` when they do not leave.
fn first_link_mtu(engine: &Engine, mut table: u32, address: IpAddr) -> Option<u16> {
    let fib = engine.get::<Fib>()?;
    for _ in 0..TABLES_FOLLOWED_MAX {
        let route = fib.best_route(table, address)?;
        let (hop, _) = *route.hops.first()?;
        match engine.node_name(hop.next).as_str() {
            nodes::ip4::LOCAL
            | nodes::ip6::LOCAL
            | nodes::ip4::DROP
            | nodes::ip6::DROP
            | nodes::ip6::LINK_LOCAL => return None,
            nodes::ip4::LOOKUP_IN_TABLE | nodes::ip6::LOOKUP_IN_TABLE => table = hop.index,
            _ => {
                let adjacency = fib.adjacencies().get(hop.index);
                return engine.interface(adjacency.tx).map(|_| adjacency.mtu_bytes);
            }
        }
    }
    None
}

/// An IPv6 packet in fragments no longer than `mtu_bytes` (RFC 8200 §4.5).
fn fragments(bytes: &[u8], mtu_bytes: u16, identification: u32) -> Option<Vec<Vec<u8>>> {
    const FRAGMENT_HEADER_BYTES: usize = 8;
    let (header, payload) = Ip6Header::split(bytes)?;
    let room = usize::from(mtu_bytes).checked_sub(Ip6Header::LEN + FRAGMENT_HEADER_BYTES)? & !7;
    if room == 0 {
        return None;
    }
    let count = payload.len().div_ceil(room);
    let cut = |(number, part): (usize, &[u8])| {
        let more = u16::from(number + 1 < count);
        let place = ((number * room) as u16) | more;
        let length = (FRAGMENT_HEADER_BYTES + part.len()) as u16;
        let (from, to) = (header.source(), header.destination());
        let outer = Ip6Header::new(from, to, IpProtocol::FRAGMENT, header.hop_limit(), length);
        let mut out = vec![0; Ip6Header::LEN];
        outer.write(&mut out).ok()?;
        out.extend([header.next_header().0, 0]);
        out.extend(place.to_be_bytes());
        out.extend(identification.to_be_bytes());
        out.extend(part);
        Some(out)
    };
    payload.chunks(room).enumerate().map(cut).collect()
}

/// An ICMP error in words.
pub(crate) fn error_words(from: IpAddr, kind: u8, code: u8) -> String {
    let known = if from.is_ipv4() {
        match (kind, code) {
            (icmp4::kind::TIME_EXCEEDED, _) => "time to live exceeded",
            (icmp4::kind::DESTINATION_UNREACHABLE, unreachable::NETWORK) => {
                "destination net unreachable"
            }
            (icmp4::kind::DESTINATION_UNREACHABLE, unreachable::HOST) => {
                "destination host unreachable"
            }
            (icmp4::kind::DESTINATION_UNREACHABLE, unreachable::FRAGMENTATION_NEEDED) => {
                "fragmentation needed"
            }
            (icmp4::kind::DESTINATION_UNREACHABLE, unreachable::PROHIBITED) => {
                "administratively prohibited"
            }
            _ => "",
        }
    } else {
        match (kind, code) {
            (icmp6::kind::TIME_EXCEEDED, _) => "hop limit exceeded",
            (icmp6::kind::PACKET_TOO_BIG, _) => "packet too big",
            (icmp6::kind::DESTINATION_UNREACHABLE, icmp6::unreachable::NO_ROUTE) => {
                "no route to destination"
            }
            (icmp6::kind::DESTINATION_UNREACHABLE, icmp6::unreachable::ADDRESS) => {
                "address unreachable"
            }
            (icmp6::kind::DESTINATION_UNREACHABLE, icmp6::unreachable::PROHIBITED) => {
                "administratively prohibited"
            }
            _ => "",
        }
    };
    if known.is_empty() { format!("ICMP type {kind} code {code}") } else { known.to_owned() }
}

impl Job<Engine> for Ping {
    fn step(&mut self, engine: &mut Engine, sink: &mut dyn Sink) -> Result<Step, Refusal> {
        let now_ns = engine.now_ns();
        if !self.begun {
            self.begun = true;
            self.next_ns = now_ns;
            sink.line(&format!(
                "ping {} from {}: {} bytes of data",
                self.ends.address, self.ends.from, self.size_bytes
            ));
        }
        if now_ns >= self.next_ns {
            (0..self.burst.min(self.left)).for_each(|_| self.send(engine, now_ns));
        }
        self.report(engine, sink);
        let last_ns = self.unanswered.iter().map(|(_, at)| *at).max();
        if self.left == 0 && last_ns.is_none_or(|last| now_ns.saturating_sub(last) >= PATIENCE_NS) {
            return Ok(Step::Done(self.summary()));
        }
        Ok(Step::Until(Instant::now() + LOOK))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fragments_hold_all_bytes_once_and_fit() {
        let (from, to) = ("2001:db8::1".parse().unwrap(), "2001:db8::2".parse().unwrap());
        let payload: Vec<u8> = (0..4001_u32).map(|place| place as u8).collect();
        let mut bytes = vec![0; Ip6Header::LEN];
        Ip6Header::new(from, to, IpProtocol::ICMP6, 64, 4001).write(&mut bytes).unwrap();
        bytes.extend(&payload);
        let cut = fragments(&bytes, 1300, 7).expect("room");
        assert_eq!(cut.len(), 4);
        let mut seen: Vec<u8> = Vec::new();
        for (number, fragment) in cut.iter().enumerate() {
            assert!(fragment.len() <= 1300);
            let (header, behind) = Ip6Header::split(fragment).unwrap();
            assert_eq!(usize::from(header.payload_length()), behind.len());
            let place = u16::from_be_bytes([behind[2], behind[3]]);
            assert_eq!((usize::from(place & !7), place & 1), (seen.len(), u16::from(number < 3)));
            assert_eq!(
                (header.next_header(), behind[0]),
                (IpProtocol::FRAGMENT, IpProtocol::ICMP6.0)
            );
            seen.extend(&behind[8..]);
        }
        assert_eq!(seen, payload);
        assert!(fragments(&bytes, 50, 7).is_none());
    }
}
