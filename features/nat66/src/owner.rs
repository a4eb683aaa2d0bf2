//! What the worker has that makes and ends sessions and bindings.

use quiver_bindings::{Bindings, End, Filtering, Flags, Ports, Wanted, inside_key, outside_key};
use quiver_core::WorkerId;
use quiver_tables::sessions::SessionError;
use quiver_translation::ip6::flow::{Flow, Side, has_ports};
use quiver_translation::tcp::{Direction, flag};
use quiver_translation::versions::read::Kind;
use quiver_wire::IpProtocol;

use crate::reasons::Nat66Drop;
use crate::session::{NewSession, Session, Writer};
use crate::tables::{Rules, WholeHost};

/// The worker that makes sessions.
pub(crate) const OWNER: WorkerId = WorkerId(0);

/// What the owner has.
pub(crate) struct Owner {
    pub writer: Writer,
    pub bindings: Bindings,
    ports: Ports,
}

/// A packet without session.
#[derive(Clone, Copy, Debug)]
pub(crate) struct First {
    pub flow: Flow,
    pub kind: Kind,
    pub now_s: u32,
}

impl Owner {
    /// `seed` is a secret.
    pub fn new(writer: Writer, bindings: Bindings, seed: u64) -> Owner {
        Owner { writer, bindings, ports: Ports::new(seed) }
    }

    /// End the sessions for which `ends` holds among the next `places`; how many ended.
    pub fn end_where(&mut self, places: usize, ends: impl Fn(Session<'_>) -> bool) -> usize {
        let Owner { writer, bindings, .. } = self;
        writer.turn(places, |_, words| {
            let session = Session(words);
            let over = ends(session);
            if over {
                release(bindings, session);
            }
            !over
        })
    }

    /// End the sessions for which `ends` holds among `places` from `first` on. The clock hand stays
    /// where it is: it may turn before the next places are looked at.
    pub fn end_from(&mut self, (first, places): (u32, u32), ends: impl Fn(Session<'_>) -> bool) {
        for number in first..first.saturating_add(places) {
            let session = Session(self.writer.objects().get(number));
            if self.writer.is_live(number) && ends(session) {
                release(&mut self.bindings, session);
                self.writer.remove(number);
            }
        }
        self.collect();
    }

    /// Use again what no worker sees any more.
    pub fn collect(&mut self) {
        self.writer.collect();
        self.bindings.writer.collect();
    }

    /// The session of a packet from inside, made when there is none; its number, and is it new?
    pub fn session_from_inside(
        &mut self,
        rules: &Rules,
        first: First,
    ) -> Result<(u32, bool), Nat66Drop> {
        let First { flow, kind, now_s } = first;
        if let Some((number, _)) = self.writer.get(&flow.key(Side::Inside)) {
            return Ok((number, false));
        }
        let flags = check_opens(flow.protocol, kind)?;
        self.check_limits(rules, flow.source.address, flow.table)?;
        let binding = self.bind(rules, &flow, now_s)?;
        let is_hairpin = rules.external.contains_key(&flow.destination.address);
        let new = NewSession {
            inside: flow,
            external: self.bindings.read.get(binding).external(),
            outside_table: rules.outside_table,
            binding,
            flags: if is_hairpin { Flags::HAIRPIN } else { Flags::default() },
            now_s,
            first: (Direction::InToOut, flags),
        };
        self.make(rules, new).map(|number| (number, true))
    }

    /// The session of a packet from outside, made when a binding admits it; its number, and is it
    /// new?
    pub fn session_from_outside(
        &mut self,
        rules: &Rules,
        first: First,
    ) -> Result<(u32, bool), Nat66Drop> {
        let First { flow, kind, now_s } = first;
        if let Some((number, _)) = self.writer.get(&flow.key(Side::Outside)) {
            return Ok((number, false));
        }
        let flags = check_opens(flow.protocol, kind)?;
        let Flow { source: remote, destination: external, protocol, .. } = flow;
        let binding = self.binding_from_outside(rules, &flow)?;
        let found = self.bindings.read.get(binding);
        let ((host, port), table) = (found.host(), found.table());
        let is_open = found.is_static() || rules.whole_hosts.contains_key(&external.address);
        if rules.filtering == Filtering::AddressDependent
            && !is_open
            && !self.bindings.is_permitted(binding, remote.address)
        {
            return Err(Nat66Drop::Filtered);
        }
        let is_icmp = protocol == IpProtocol::ICMP6;
        let remote_port = if is_icmp { port } else { remote.port };
        let new = NewSession {
            inside: Flow {
                source: End { address: host, port },
                destination: End { port: remote_port, ..remote },
                protocol,
                table,
            },
            external,
            outside_table: rules.outside_table,
            binding,
            flags: match rules.external.contains_key(&remote.address) {
                true => Flags::HAIRPIN,
                false => Flags::default(),
            },
            now_s,
            first: (Direction::OutToIn, flags),
        };
        let made = self.check_limits(rules, host, table).and_then(|()| self.make(rules, new));
        self.bindings.discard(binding, |_| ());
        made.map(|number| (number, true))
    }

    /// The binding that a packet from outside is for. It is made for a host with an address of its
    /// own, and goes unless a session begins to use it.
    fn binding_from_outside(&mut self, rules: &Rules, flow: &Flow) -> Result<u32, Nat66Drop> {
        let Flow { destination: external, protocol, .. } = *flow;
        let outside = outside_key(external, protocol, rules.outside_table);
        if let Some(number) = self.bindings.read.number(&outside) {
            return Ok(number);
        }
        let whole = rules.whole_hosts.get(&external.address).ok_or(Nat66Drop::NoTranslation)?;
        let inside = inside_key(whole.address, external.port, protocol, whole.table);
        self.bindings.bind(inside, outside, false).map_err(refused)
    }

    /// The binding of the host's end that a packet from inside comes from, made when there is none.
    fn bind(&mut self, rules: &Rules, flow: &Flow, now_s: u32) -> Result<u32, Nat66Drop> {
        let Flow { source: End { address: host, port }, protocol, table, .. } = *flow;
        let key = inside_key(host, port, protocol, table);
        if let Some(number) = self.bindings.read.number(&key) {
            return Ok(number);
        }
        let external = match rules.whole.get(&WholeHost { table, address: host }) {
            Some(address) => End { address: *address, port },
            None => {
                let outside_table = rules.outside_table;
                let wanted = Wanted { host, port, protocol, table, outside_table, now_s };
                let has_ports = has_ports(protocol);
                let bindings = &self.bindings.read;
                let end = self.ports.external_end(bindings, &rules.pool, wanted, has_ports);
                end.map_err(|_| Nat66Drop::OutOfPorts)?
            }
        };
        let outside = outside_key(external, protocol, rules.outside_table);
        self.bindings.bind(key, outside, false).map_err(refused)
    }

    /// Is there a session left, also for the subscriber of a host?
    fn check_limits(&self, rules: &Rules, host: u128, table: u32) -> Result<(), Nat66Drop> {
        if self.writer.len() >= self.writer.sessions_max() {
            return Err(Nat66Drop::SessionsExceeded);
        }
        match rules.limit {
            Some(limit) if self.bindings.used(limit, host, table) >= limit.sessions => {
                Err(Nat66Drop::SubscriberLimit)
            }
            _ => Ok(()),
        }
    }

    /// Make a session of a binding, which goes when there is none.
    fn make(&mut self, rules: &Rules, mut new: NewSession) -> Result<u32, Nat66Drop> {
        let (binding, remote) = (new.binding, new.inside.destination.address);
        let begun = self.bindings.begin(binding, remote, rules.limit);
        let made = begun.and_then(|flags| {
            new.flags = new.flags.with(flags);
            let made = self.writer.insert(new.words());
            if made.is_err() {
                self.bindings.end(binding, remote, new.flags, |_| ());
            }
            made
        });
        if made.is_err() {
            self.bindings.discard(binding, |_| ());
        }
        made.map_err(refused)
    }
}

/// A session ends.
fn release(bindings: &mut Bindings, session: Session<'_>) {
    let remote = session.inside().destination.address;
    bindings.end(session.binding(), remote, session.flags(), |_| ());
}

fn refused(error: SessionError) -> Nat66Drop {
    match error {
        SessionError::Full { .. } | SessionError::Waiting => Nat66Drop::SessionsExceeded,
        SessionError::Collides { .. } => Nat66Drop::NoTranslation,
        SessionError::Table(_) => Nat66Drop::Crowded,
    }
}

/// The TCP flags of a packet that opens something. An echo reply opens nothing.
fn check_opens(protocol: IpProtocol, kind: Kind) -> Result<u8, Nat66Drop> {
    match kind {
        Kind::Data { tcp_flags } if protocol == IpProtocol::TCP => {
            let opens = flag::SYN | flag::ACK | flag::RST | flag::FIN;
            (tcp_flags & opens == flag::SYN).then_some(tcp_flags).ok_or(Nat66Drop::NonSyn)
        }
        Kind::Data { .. } | Kind::Query => Ok(0),
        _ => Err(Nat66Drop::NoTranslation),
    }
}
