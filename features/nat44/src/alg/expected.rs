//! Connections that an application has announced and that have not come yet. Two keys lead to each,
//! as to a session; the worker that makes sessions stores, every worker looks up.
//!
//! | word | content |
//! | --- | --- |
//! | 0, 1 | its packets as they come, with port 0 for any source port |
//! | 2, 3 | the own end, and the peer's address |
//! | 4 | second at whose end it is forgotten (32 bits), flags of its session (16), what it is (8) |
//! | 5 | the address that its sender gets, of one from the inside and of twice-NAT |

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::Ordering;

use quiver_control::Refusal;
use quiver_core::Engine;
use quiver_tables::exact::{Limits, Seed};
use quiver_translation::flow::{End, Flow};
use quiver_wire::IpProtocol;

use crate::bindings::{Bindings, Readers};
use crate::config::Nat44;
use crate::session::{Direction, Flags, Session, WORDS, Writer};
use crate::tables::Provider;

/// Connections that are expected at once.
const EXPECTED_MAX: usize = 4_096;
/// Connections that are expected to one host, or by it, at once: others have room, too.
const OF_HOST_MAX: u16 = 256;
/// Hosts are counted in so many places; those that share one share the limit.
const HOST_PLACES: usize = 4_096;
/// Seconds for which one is expected: who has announced an end waits there already.
pub(crate) const EXPECTED_S: u32 = 60;

const LIMITS: Limits = Limits {
    what: "NAT44 table of expected connections",
    entries_max: EXPECTED_MAX,
    remedy: "none is needed: it does not grow",
};

const LIFE: usize = 4;
const EXTERNAL: usize = 5;

/// What becomes of the packet that comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// It goes to this end, in the table with this small number.
    Local(End, u32),
    /// It comes from inside, and gets this external address.
    From(u32),
    /// It goes to this end, in the table with this small number, and its sender gets this address
    /// there (twice-NAT).
    Both { to: End, table: u32, from: u32 },
}

/// An expected connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Expectation {
    /// Who connects: any port of this address, in the table with this small number.
    pub peer: u32,
    pub table: u32,
    /// Where to, as the packet comes.
    pub to: End,
    pub protocol: IpProtocol,
    pub target: Target,
    /// Flags that its session gets: bindings that its external end uses.
    pub flags: Flags,
}

impl Expectation {
    /// The flow of its packets as they come.
    fn coming(&self) -> Flow {
        let Expectation { peer, table, to, protocol, .. } = *self;
        Flow { source: End { address: peer, port: 0 }, destination: to, protocol, table }
    }

    /// What is announced, without where to: who announces it again gets the same.
    fn announced(&self) -> Flow {
        let peer = End { address: self.peer, port: 0 };
        let protocol = self.protocol;
        match self.target {
            Target::Local(end, table) | Target::Both { to: end, table, .. } => {
                Flow { source: end, destination: peer, protocol, table }
            }
            // Port 1 is no end of the other kind: such ports are not announced.
            Target::From(_) => Flow {
                source: self.to,
                destination: End { port: 1, ..peer },
                protocol,
                table: self.table,
            },
        }
    }

    /// The host inside that has announced it, or whom it was announced to; and its table.
    fn host(&self) -> (u32, u32) {
        match self.target {
            Target::Local(end, table) | Target::Both { to: end, table, .. } => (end.address, table),
            Target::From(_) => (self.peer, self.table),
        }
    }

    fn words(&self, until_s: u32) -> [u64; WORDS] {
        let ([a, b], [c, d]) = (self.coming().key(), self.announced().key());
        let (kind, external) = match self.target {
            Target::Local(..) => (0, 0),
            Target::From(external) => (1, external),
            Target::Both { from, .. } => (2, from),
        };
        let life = u64::from(until_s) | u64::from(self.flags.0) << 32 | kind << 48;
        [a, b, c, d, life, external.into(), 0, 0]
    }

    fn of(session: Session<'_>) -> Expectation {
        let coming = session.flow(Direction::InToOut);
        let announced = session.flow(Direction::OutToIn);
        let life = session.0[LIFE].load(Ordering::Relaxed);
        let external = session.0[EXTERNAL].load(Ordering::Relaxed) as u32;
        let target = match life >> 48 & 0xff {
            0 => Target::Local(announced.source, announced.table),
            1 => Target::From(external),
            _ => Target::Both { to: announced.source, table: announced.table, from: external },
        };
        Expectation {
            peer: coming.source.address,
            table: coming.table,
            to: coming.destination,
            protocol: coming.protocol,
            target,
            flags: Flags((life >> 32) as u16),
        }
    }

    /// Count it where its external end is used, or no more.
    fn hold(&self, bindings: Option<&Bindings>, provider: &Provider, is_held: bool, now_s: u32) {
        if let (Some(bindings), Target::Local(end, table)) = (bindings, self.target) {
            let inside = Flow { source: end, table, ..self.coming() };
            bindings.hold((inside, self.coming()), self.flags, provider, (is_held, now_s));
        }
    }
}

impl Readers {
    /// The number of the expectation of a packet that comes.
    pub fn expected(&self, flow: &Flow) -> Option<u32> {
        let key = Flow { source: End { port: 0, ..flow.source }, ..*flow }.key();
        self.table.lookup(&key).filter(|index| index & 1 == 0).map(|index| index >> 1)
    }
}

/// The memory of the connections that helpers expect.
pub(crate) fn take_writer(engine: &Engine, nat: &mut Nat44) -> Result<Writer, Refusal> {
    let refusal = |error: &dyn std::fmt::Display| Refusal::new(error.to_string());
    let mut writer = match nat.expected_writer.take() {
        Some(writer) => writer,
        None if nat.shared.expected().is_some() => {
            return Err(Refusal::new("the worker that has the sessions did not answer")
                .remedy("restart the router"));
        }
        None => {
            Writer::new(engine.epochs(), LIMITS, Seed::random()).map_err(|error| refusal(&error))?
        }
    };
    if let Err(error) = writer.enable(EXPECTED_MAX) {
        writer.disable();
        nat.expected_writer = Some(writer);
        return Err(refusal(&error));
    }
    Ok(writer)
}

/// How many are expected of each host, in places that a secret chooses.
struct HostCounts {
    counts: Box<[u16]>,
    secret: RandomState,
}

impl HostCounts {
    fn place(&mut self, expectation: &Expectation) -> &mut u16 {
        let at = self.secret.hash_one(expectation.host()) as usize % HOST_PLACES;
        &mut self.counts[at]
    }

    fn is_full(&mut self, expectation: &Expectation) -> bool {
        *self.place(expectation) >= OF_HOST_MAX
    }

    fn add(&mut self, expectation: &Expectation) {
        *self.place(expectation) += 1;
    }

    fn take(&mut self, expectation: &Expectation) {
        let place = self.place(expectation);
        *place = place.saturating_sub(1);
    }
}

/// The owner's.
pub(crate) struct Expected {
    pub writer: Writer,
    read: Readers,
    hosts: HostCounts,
}

impl Expected {
    pub fn new(writer: Writer) -> Expected {
        let read = Readers { table: writer.table(), objects: writer.objects().clone() };
        let counts = vec![0; HOST_PLACES].into_boxed_slice();
        Expected { writer, read, hosts: HostCounts { counts, secret: RandomState::new() } }
    }

    /// What workers look up in.
    pub fn read(&self) -> Readers {
        self.read.clone()
    }

    /// The expectation of a packet that comes.
    pub fn find(&self, flow: &Flow) -> Option<Expectation> {
        if self.writer.is_empty() {
            return None;
        }
        self.read.expected(flow).map(|number| self.get(number))
    }

    fn get(&self, number: u32) -> Expectation {
        Expectation::of(Session(self.read.objects.get(number)))
    }

    /// What was announced of this end and peer before, with a new life.
    pub fn again(&mut self, like: &Expectation, now_s: u32) -> Option<Expectation> {
        let number = self.read.number(&like.announced().key())?;
        let known = self.get(number);
        if known.announced() != like.announced() {
            return None;
        }
        let words = known.words(now_s.saturating_add(EXPECTED_S));
        self.read.objects.get(number)[LIFE].store(words[LIFE], Ordering::Relaxed);
        Some(known)
    }

    /// Expect a connection; false when as many are expected as may be, in all or of its host, or
    /// one at this end.
    pub fn add(
        &mut self,
        new: &Expectation,
        bindings: Option<&Bindings>,
        provider: &Provider,
        now_s: u32,
    ) -> bool {
        self.writer.collect();
        let words = new.words(now_s.saturating_add(EXPECTED_S));
        let added = !self.hosts.is_full(new) && self.writer.insert(words).is_ok();
        if added {
            self.hosts.add(new);
            new.hold(bindings, provider, true, now_s);
        }
        added
    }

    /// A packet has come: others of this peer are not admitted.
    pub fn end(
        &mut self,
        flow: &Flow,
        bindings: Option<&Bindings>,
        provider: &Provider,
        now_s: u32,
    ) {
        if let Some(number) = self.read.expected(flow) {
            let known = self.get(number);
            known.hold(bindings, provider, false, now_s);
            self.hosts.take(&known);
            self.writer.remove(number);
        }
    }

    /// Forget those whose time is over.
    pub fn turn(&mut self, bindings: Option<&Bindings>, provider: &Provider, now_s: u32) {
        if self.writer.is_empty() {
            return;
        }
        self.writer.collect();
        let Expected { writer, hosts, .. } = self;
        writer.turn(writer.places(), |_, words| {
            let is_over = (words[LIFE].load(Ordering::Relaxed) as u32) < now_s;
            if is_over {
                let known = Expectation::of(Session(words));
                known.hold(bindings, provider, false, now_s);
                hosts.take(&known);
            }
            !is_over
        });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::*;

    #[test]
    fn the_words_of_an_expectation_say_what_it_is() {
        let end = |address, port| End { address, port };
        let both = Target::Both { to: end(3, 4_000), table: 5, from: 9 };
        for target in [Target::Local(end(3, 4_000), 5), Target::From(9), both] {
            let expectation = Expectation {
                peer: 7,
                table: 2,
                to: end(8, 4_001),
                protocol: IpProtocol::TCP,
                target,
                flags: Flags::POOLED.with(Flags::MAPPED),
            };
            let words = expectation.words(77).map(AtomicU64::new);
            assert_eq!(Expectation::of(Session(&words)), expectation);
        }
    }
}
