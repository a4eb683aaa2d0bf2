//! Application layer gateways (RFC 2663 §2.9): packets of protocols that name their ends in their
//! text go to the slow path, which translates the text and expects the connections that it
//! announces.

pub(crate) mod commands;
mod control;
pub(crate) mod expected;
mod ftp;
mod metrics;
mod pptp;
mod segment;
mod stream;
mod tftp;

use std::collections::HashMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use quiver_core::Packet;
use quiver_translation::flow::{End, Flow};
use quiver_wire::IpProtocol;

pub(crate) use self::metrics::start;
use crate::alg::control::Connection;
use crate::alg::expected::{Expectation, Expected, Target};
use crate::bindings::Readers;
use crate::flows::{Moment, Plan};
use crate::node::Nat44Drop;
use crate::owned::Owner;
use crate::ports::{ALL_PORTS, PORTS_PER_LOOK_UP, Wanted};
use crate::session::{Direction, Flags, Session};
use crate::tables::{FIRST_PORT, Rules};

/// Control connections of FTP at once.
pub(crate) const CONNECTIONS_MAX: usize = 4_096;
/// The port of a server's data connections (RFC 959 §3.2), for which the external end of an
/// announced one is looked for.
const FTP_DATA_PORT: u16 = 20;

/// A protocol that is helped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Helper {
    Ftp = 0,
    Tftp = 1,
    Pptp = 2,
}

impl Helper {
    pub const ALL: [Helper; 3] = [Helper::Ftp, Helper::Tftp, Helper::Pptp];

    pub fn word(self) -> &'static str {
        ["ftp", "tftp", "pptp"][self as usize]
    }

    /// The port of its servers (IANA).
    pub fn usual_port(self) -> u16 {
        [21, 69, 1_723][self as usize]
    }

    /// The port until another one is configured, 0 for none: RFC 5382 REQ-6 lets FTP be helped
    /// without being asked, and RFC 4787 REQ-10 nothing else.
    pub fn default_port(self) -> u16 {
        if self == Helper::Ftp { self.usual_port() } else { 0 }
    }

    fn protocol(self) -> IpProtocol {
        if self == Helper::Tftp { IpProtocol::UDP } else { IpProtocol::TCP }
    }
}

/// What is counted of a helper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Count {
    /// Sessions whose packets it has looked at.
    Sessions = 0,
    /// Texts that got another address, port or call.
    Rewritten = 1,
    /// Connections and calls that it has opened.
    Opened = 2,
    /// Announcements of another host's end, or of a well-known port: not opened (RFC 2577 §3).
    Refused = 3,
    /// Announcements for which there was no port or no place.
    Failed = 4,
}

impl Count {
    pub const ALL: [(Count, &str); 5] = [
        (Count::Sessions, "sessions"),
        (Count::Rewritten, "rewritten"),
        (Count::Opened, "opened"),
        (Count::Refused, "refused"),
        (Count::Failed, "failed"),
    ];
}

/// What all workers and the control thread read.
#[derive(Debug)]
pub(crate) struct Shared {
    /// By helper; 0: it is off.
    ports: [AtomicU32; Helper::ALL.len()],
    counts: [[AtomicU64; Count::ALL.len()]; Helper::ALL.len()],
}

impl Default for Shared {
    fn default() -> Shared {
        let ports = Helper::ALL.map(|helper| AtomicU32::new(helper.default_port().into()));
        Shared { ports, counts: Default::default() }
    }
}

impl Shared {
    /// The port of a helper's servers; 0 when it is off.
    pub fn port(&self, helper: Helper) -> u16 {
        self.ports[helper as usize].load(Ordering::Relaxed) as u16
    }

    pub fn set_port(&self, helper: Helper, port: u16) {
        self.ports[helper as usize].store(port.into(), Ordering::Relaxed);
    }

    pub fn count(&self, helper: Helper, what: Count) {
        self.counts[helper as usize][what as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub fn counted(&self, helper: Helper, what: Count) -> u64 {
        self.counts[helper as usize][what as usize].load(Ordering::Relaxed)
    }

    /// Are packets of GRE told apart by their calls?
    #[inline]
    pub fn has_calls(&self) -> bool {
        self.port(Helper::Pptp) != 0
    }

    /// Whose servers have one of these ports?
    pub fn helper(&self, protocol: IpProtocol, ports: [u16; 2]) -> Option<Helper> {
        Helper::ALL.into_iter().find(|helper| {
            let port = self.port(*helper);
            helper.protocol() == protocol && port != 0 && ports.contains(&port)
        })
    }
}

/// The expected connections as workers read them, from the first `nat44 plugin enable` on.
pub(crate) type SharedExpected = OnceLock<Readers>;

/// What the owner has for helpers.
pub(crate) struct Algs {
    pub expected: Expected,
    /// Control connections of FTP, by the number of their session.
    connections: HashMap<u32, Connection>,
}

impl Algs {
    /// With the memory of all connections (control thread).
    pub fn new(expected: Expected) -> Algs {
        Algs { expected, connections: HashMap::with_capacity(2 * CONNECTIONS_MAX) }
    }

    /// A session ends.
    pub fn forget(&mut self, number: u32, session: Session<'_>) {
        if session.is_helped() {
            self.connections.remove(&number);
        }
    }

    /// May one more session of a helper begin?
    pub fn has_place(&self, helper: Helper) -> bool {
        helper != Helper::Ftp || self.connections.len() < CONNECTIONS_MAX
    }

    /// A session of a helper begins with a packet of the client.
    pub fn begin(&mut self, number: u32, helper: Helper, client: Direction) {
        if helper == Helper::Ftp {
            self.connections.insert(number, Connection::new(client));
        }
    }
}

/// A packet of a session that is helped.
#[derive(Clone, Copy)]
pub(crate) struct Helped<'s> {
    pub rules: &'s Rules,
    pub shared: &'s Shared,
    pub number: u32,
    pub session: Session<'s>,
    pub direction: Direction,
    pub at: Moment,
}

/// An announced end, and who will connect to it.
#[derive(Clone, Copy, Debug)]
struct Announced {
    helper: Helper,
    port: u16,
}

impl Helped<'_> {
    /// The flow of the packet as it comes.
    fn own(&self) -> Flow {
        self.session.flow(self.direction)
    }

    /// The flow of packets of the other direction.
    fn back(&self) -> Flow {
        self.session.flow(self.direction.other())
    }

    /// Is the sender's address another one behind the translator?
    fn is_translated(&self) -> bool {
        self.own().source.address != self.back().destination.address
    }

    /// What sessions have of one in which both ends are translated by twice-NAT: their ends are
    /// those of the control connection, and of no binding.
    fn flags_of_twice(&self) -> Option<Flags> {
        let flags = self.session.flags();
        let hairpin = Flags(flags.0 & Flags::HAIRPIN.0);
        flags.has(Flags::TWICE).then_some(Flags::TWICE.with(hairpin))
    }

    fn count(&self, helper: Helper, what: Count) {
        self.shared.count(helper, what);
    }
}

impl Owner {
    /// The helper of a session that a packet of `flow` makes, while it has a place.
    pub fn helper_of(&self, shared: &Shared, plan: &Plan, flow: &Flow) -> Option<Helper> {
        let server = match plan.inside.source == flow.source {
            true => plan.outside.source,
            false => plan.inside.source,
        };
        let helper = shared.helper(flow.protocol, [flow.destination.port, server.port])?;
        let has_place = self.algs.has_place(helper);
        if !has_place {
            shared.count(helper, Count::Failed);
        }
        has_place.then_some(helper)
    }

    /// Translate the text of a packet, whose addresses and ports are still those that it came
    /// with.
    ///
    /// # Errors
    /// Its sender must send it again.
    pub fn help(&mut self, helped: Helped<'_>, packet: &mut Packet) -> Result<(), Nat44Drop> {
        if self.algs.connections.contains_key(&helped.number) {
            return self.help_ftp(helped, packet);
        }
        let (own, back) = (helped.own(), helped.back());
        let ports =
            [[own.destination.port, back.source.port], [own.source.port, back.destination.port]];
        let helper = |ports| helped.shared.helper(own.protocol, ports);
        match helper(ports[0]).or_else(|| helper(ports[1])) {
            Some(Helper::Tftp) => self.help_tftp(helped, packet),
            Some(Helper::Pptp) => self.help_pptp(helped, packet),
            // Another router has made it, or its port was the helper's when it began.
            Some(Helper::Ftp) | None => {}
        }
        Ok(())
    }

    /// Expect the connection of the peer to an end that the sender of a packet has announced. Where
    /// it is announced to the peer, if that is another one.
    fn announce(&mut self, helped: Helped<'_>, announced: Announced) -> Option<End> {
        let Announced { helper, port } = announced;
        let (own, back) = (helped.own(), helped.back());
        let end = End { port, ..own.source };
        let known = helped.rules.mapping_of(end, own.protocol, own.table);
        if let Some(mapping) = known.filter(|_| helped.is_translated()) {
            let port = if mapping.is_whole() { port } else { mapping.external.port };
            return Some(End { port, ..mapping.external });
        }
        let mut new = Expectation {
            peer: back.source.address,
            table: back.table,
            to: end,
            protocol: own.protocol,
            target: Target::From(own.destination.address),
            flags: Flags::default(),
        };
        let twice = helped.flags_of_twice();
        if twice.is_some() {
            let from = own.destination.address;
            new.target = Target::Both { to: end, table: own.table, from };
        } else if helped.is_translated() {
            new.target = Target::Local(end, own.table);
        }
        let now_s = helped.at.now_s;
        let again = self.algs.expected.again(&new, now_s);
        let expected = again.or_else(|| {
            if helped.is_translated() {
                (new.to, new.flags) = self.external_of(helped, helper, end)?;
            }
            new.flags = twice.unwrap_or(new.flags);
            let Owner { algs, bindings, .. } = self;
            let provider = &helped.rules.provider;
            algs.expected.add(&new, bindings.as_deref(), provider, now_s).then_some(new)
        });
        helped.count(helper, if expected.is_some() { Count::Opened } else { Count::Failed });
        expected.map(|expected| expected.to).filter(|_| helped.is_translated())
    }

    /// The external end of an announced one: at the address that the peer knows the sender by.
    fn external_of(
        &mut self,
        helped: Helped<'_>,
        helper: Helper,
        end: End,
    ) -> Option<(End, Flags)> {
        let (own, back) = (helped.own(), helped.back());
        let (seen, flags) = (back.destination, helped.session.flags());
        let held = Flags(flags.0 & (Flags::POOLED.0 | Flags::MAPPED.0 | Flags::IN_BLOCK.0));
        if helper == Helper::Tftp {
            return Some((seen, held));
        }
        let remote = End { port: FTP_DATA_PORT, ..back.source };
        let wanted = Wanted {
            rules: helped.rules,
            flow: Flow {
                source: end,
                destination: End { port: FTP_DATA_PORT, ..own.destination },
                protocol: own.protocol,
                table: own.table,
            },
            remote,
            table: back.table,
            now_s: helped.at.now_s,
        };
        if flags.has(Flags::MAPPED.with(Flags::IN_BLOCK)) {
            let (external, flags) = self.external_end(&wanted).ok()?;
            return (external.address == seen.address).then_some((external, flags));
        }
        let port = self.port(&wanted, seen.address, ALL_PORTS, PORTS_PER_LOOK_UP)?;
        Some((End { port, ..seen }, held))
    }

    /// A connection that was expected has come.
    pub fn end_expected(&mut self, rules: &Rules, flow: &Flow, now_s: u32) {
        let Owner { algs, bindings, .. } = self;
        algs.expected.end(flow, bindings.as_deref(), &rules.provider, now_s);
    }

    /// The clock hand turns.
    pub fn turn_expected(&mut self, rules: &Rules, now_s: u32) {
        let Owner { algs, bindings, .. } = self;
        algs.expected.turn(bindings.as_deref(), &rules.provider, now_s);
    }
}

/// May a port be announced? Well-known ones are those of other services (RFC 2577 §3).
fn may_be_announced(port: u16) -> bool {
    port >= FIRST_PORT
}
