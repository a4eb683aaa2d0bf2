//! What the worker has that makes and ends sessions and bindings.

use quiver_bindings::{
    Bindings, End, External, Filtering, Flags, NoSession, Ports, Wanted, inside_key, outside_key,
};
use quiver_translation::ip6::flow::{Flow, Side, has_ports};
use quiver_translation::tcp::Direction;
use quiver_translation::versions::read::Kind;
use quiver_wire::IpProtocol;

use crate::reasons::Nat66Drop;
use crate::session::{NewSession, Session, Writer};
use crate::tables::{Rules, WholeHost};

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
        bindings.turn_sessions(writer, places, |bindings, _, words| {
            end_if(ends(Session(words)), bindings, Session(words))
        })
    }

    /// End the sessions for which `ends` holds among `places` from the first one on.
    pub fn end_from(&mut self, places: (u32, u32), ends: impl Fn(Session<'_>) -> bool) {
        let Owner { writer, bindings, .. } = self;
        bindings.end_sessions(writer, places, |bindings, _, words| {
            end_if(ends(Session(words)), bindings, Session(words))
        });
    }

    /// Use again what no worker sees any more.
    pub fn collect(&mut self) {
        self.bindings.collect(&mut self.writer);
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
        let flags = kind.opens(flow.protocol)?;
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
        let flags = kind.opens(flow.protocol)?;
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
        let bound = self.bindings.bind(inside, outside, false).map_err(NoSession::Binding)?;
        Ok(bound)
    }

    /// The binding of the host's end that a packet from inside comes from, made when there is none.
    fn bind(&mut self, rules: &Rules, flow: &Flow, now_s: u32) -> Result<u32, Nat66Drop> {
        let Flow { source: End { address: host, port }, protocol, table, .. } = *flow;
        let outside_table = rules.outside_table;
        let wanted = Wanted { host, port, protocol, table, outside_table, now_s };
        let external = match rules.whole.get(&WholeHost { table, address: host }) {
            Some(address) => External::Own(End { address: *address, port }),
            None => External::Pool { pool: &rules.pool, has_ports: has_ports(protocol) },
        };
        let (number, _) = self.bindings.bind_host(&mut self.ports, wanted, external)?;
        Ok(number)
    }

    /// Is there a session left, also for the subscriber of a host?
    fn check_limits(&self, rules: &Rules, host: u128, table: u32) -> Result<(), Nat66Drop> {
        if self.writer.len() >= self.writer.sessions_max() {
            return Err(Nat66Drop::SessionsExceeded);
        }
        match self.bindings.is_at_limit(rules.limit, host, table) {
            true => Err(Nat66Drop::SubscriberLimit),
            false => Ok(()),
        }
    }

    /// Make a session of a binding, which goes when there is none.
    fn make(&mut self, rules: &Rules, new: NewSession) -> Result<u32, Nat66Drop> {
        let Owner { writer, bindings, .. } = self;
        let to = (new.binding, new.inside.destination.address);
        let words = |flags| NewSession { flags: new.flags.with(flags), ..new }.words();
        let made = bindings.make_session(writer, to, rules.limit, words, |_| ());
        if made.is_err() {
            bindings.discard(new.binding, |_| ());
        }
        Ok(made?)
    }
}

/// Release the bindings of a session if it ends.
fn end_if(ends: bool, bindings: &mut Bindings, session: Session<'_>) -> bool {
    if ends {
        let remote = session.inside().destination.address;
        bindings.end(session.binding(), remote, session.flags(), |_| ());
    }
    ends
}
