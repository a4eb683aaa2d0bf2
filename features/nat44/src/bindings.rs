//! Bindings: what the worker that makes sessions remembers beside them. Two keys lead to each, as
//! to a session; every worker and the control thread may read them.
//!
//! | kind | first key | second key | users |
//! | --- | --- | --- | --- |
//! | subscriber | address inside, table | the same | live sessions |
//! | block | address inside, table, number | external address, index of the block | ports in use |
//! | mapping | end inside, protocol, table | external end, protocol | live sessions |
//! | permission | external end, remote address | the same, reversed | live sessions |
//! | quarantine | flow from inside | flow from outside | none |
//!
//! | word | content |
//! | --- | --- |
//! | 4 | users (32 bits), second in which it was last used (32) |
//! | 5 | second in which it was made (32), kind (8) |
//! | 6 | subscriber: paired address (32), mappings (24), blocks (8); mapping: is it in a block? |
//! | 7 | subscriber: thousandths of sessions that may be made now (32), millisecond (32) |
//!
//! Only the worker that makes sessions stores.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use quiver_nat_log::Event;
use quiver_tables::sessions::SessionError;
use quiver_wire::IpProtocol;

use crate::session::{Direction, Flags, Objects, Session, Table, WORDS, Writer};
use crate::softwires::{B4, is_softwire};
use crate::standby::Journal;
use crate::tables::{Blocks, Provider, Rules};
use quiver_translation::flow::{End, Flow, Key};

const USERS: usize = 4;
const MADE: usize = 5;
const DETAIL: usize = 6;
const BUCKET: usize = 7;
/// Numbers in the place of a protocol that mark keys of other kinds than mappings, whose protocols
/// are TCP, UDP and ICMP.
const SUBSCRIBER: IpProtocol = IpProtocol(255);
const PERMISSION: IpProtocol = IpProtocol(254);
const BLOCK: IpProtocol = IpProtocol(252);
/// Marks the table of a key in quarantine.
const QUARANTINE: u32 = 1 << 23;
/// Seconds for which a subscriber without sessions is remembered: its bucket is full then.
const SUBSCRIBER_IDLE_S: u32 = 2;
/// Tokens of a session.
const TOKENS_PER_SESSION: u64 = 1_000;

/// What a binding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Subscriber = 0,
    Block = 1,
    Mapping = 2,
    Permission = 3,
    Quarantine = 4,
}

impl Kind {
    pub const ALL: [Kind; 5] =
        [Kind::Subscriber, Kind::Block, Kind::Mapping, Kind::Permission, Kind::Quarantine];
}

/// The key of the end that packets come from, and that of the end that they go to.
fn keys(from: End, to: End, protocol: IpProtocol, table: u32) -> Key {
    Flow { source: from, destination: to, protocol, table }.key()
}

/// The address of the subscriber that a host is: all behind a B4 are one (RFC 6333 §6.6).
pub(crate) fn subscriber_address(table: u32, address: u32) -> u32 {
    if is_softwire(table) { B4 } else { address }
}

/// The keys of a subscriber; address 0 stands for all hosts of the table.
pub(crate) fn subscriber_keys(table: u32, address: u32) -> [Key; 2] {
    let address = subscriber_address(table, address);
    let (own, none) = (End { address, port: 0 }, End::default());
    [keys(own, none, SUBSCRIBER, table), keys(none, End { address, port: 1 }, SUBSCRIBER, table)]
}

/// The first key of a subscriber's block number `nth`.
pub(crate) fn block_of(table: u32, address: u32, nth: u16) -> Key {
    keys(End { address, port: nth + 1 }, End::default(), BLOCK, table)
}

/// The second key of a block: that at `index` of an external address.
pub(crate) fn block_at(external: u32, index: u16) -> Key {
    keys(End::default(), End { address: external, port: index + 1 }, BLOCK, 0)
}

/// The first key of a mapping.
pub(crate) fn mapping_from(inside: End, protocol: IpProtocol, table: u32) -> Key {
    keys(inside, End::default(), protocol, table)
}

/// The second key of a mapping.
pub(crate) fn mapping_to(external: End, protocol: IpProtocol) -> Key {
    keys(End::default(), external, protocol, 0)
}

/// The keys of a permission for all ports of a remote address.
pub(crate) fn permission_keys(external: End, remote: u32, protocol: IpProtocol) -> [Key; 2] {
    let (remote, table) = (End { address: remote, port: 0 }, u32::from(protocol.0));
    [keys(external, remote, PERMISSION, table), keys(remote, external, PERMISSION, table)]
}

/// The key in quarantine of a session's key.
pub(crate) fn quarantined(flow: Flow) -> Key {
    Flow { table: flow.table | QUARANTINE, ..flow }.key()
}

/// A binding as everybody reads it.
#[derive(Clone, Copy)]
pub(crate) struct Binding<'o>(pub &'o [AtomicU64; WORDS]);

impl Binding<'_> {
    fn word(self, at: usize) -> u64 {
        self.0[at].load(Ordering::Relaxed)
    }

    fn store(self, at: usize, word: u64) {
        self.0[at].store(word, Ordering::Relaxed);
    }

    pub fn flow(self, direction: Direction) -> Flow {
        Session(self.0).flow(direction)
    }

    pub fn kind(self) -> Kind {
        let number = (self.word(MADE) >> 32) as usize & 0xff;
        Kind::ALL.get(number).copied().unwrap_or(Kind::Quarantine)
    }

    pub fn users(self) -> u32 {
        self.word(USERS) as u32
    }

    pub fn seen_s(self) -> u32 {
        (self.word(USERS) >> 32) as u32
    }

    pub fn made_s(self) -> u32 {
        self.word(MADE) as u32
    }

    fn set_users(self, users: u32, now_s: u32) {
        self.store(USERS, u64::from(users) | u64::from(now_s) << 32);
    }

    pub fn add_user(self, now_s: u32) {
        self.set_users(self.users().saturating_add(1), now_s);
    }

    pub fn drop_user(self, now_s: u32) {
        self.set_users(self.users().saturating_sub(1), now_s);
    }

    /// Of a subscriber: the external address that it was paired with, 0 when with none.
    pub fn paired(self) -> u32 {
        self.word(DETAIL) as u32
    }

    fn pair(self, address: u32) {
        self.store(DETAIL, self.word(DETAIL) & !0xffff_ffff | u64::from(address));
    }

    /// Of a subscriber: its mappings.
    pub fn mappings(self) -> u32 {
        (self.word(DETAIL) >> 32) as u32 & 0xff_ffff
    }

    /// Of a subscriber: its blocks.
    pub fn blocks(self) -> u32 {
        (self.word(DETAIL) >> 56) as u32
    }

    fn set_owned(self, mappings: u32, blocks: u32) {
        let address = self.word(DETAIL) & 0xffff_ffff;
        let mappings = u64::from(mappings.min(0xff_ffff));
        self.store(DETAIL, address | mappings << 32 | u64::from(blocks.min(255)) << 56);
    }

    /// Of a mapping: is its port in a block?
    fn is_in_block(self) -> bool {
        self.word(DETAIL) != 0
    }

    /// Take a token from a subscriber's bucket, which gets `rate` tokens a second and takes those
    /// of one second.
    fn take_token(self, rate: u32, now_ms: u32) -> bool {
        let (most, word) = (u64::from(rate) * TOKENS_PER_SESSION, self.word(BUCKET));
        let passed_ms = u64::from(now_ms.wrapping_sub((word >> 32) as u32));
        let tokens = match word {
            0 => most,
            word => (word & 0xffff_ffff).saturating_add(passed_ms * u64::from(rate)).min(most),
        };
        let left = tokens.checked_sub(TOKENS_PER_SESSION);
        let kept = left.unwrap_or(tokens).min(u64::from(u32::MAX));
        self.store(BUCKET, kept | u64::from(now_ms.max(1)) << 32);
        left.is_some()
    }

    /// Is nobody using it, and was nobody for so long that it may go?
    fn is_over(self, now_s: u32, provider: &Provider) -> bool {
        let idle_s = now_s.saturating_sub(self.seen_s());
        self.users() == 0
            && match self.kind() {
                Kind::Subscriber => {
                    self.mappings() == 0 && self.blocks() == 0 && idle_s >= SUBSCRIBER_IDLE_S
                }
                Kind::Block => idle_s >= provider.blocks.map_or(0, |blocks| blocks.timeout_s),
                Kind::Mapping | Kind::Quarantine => idle_s >= provider.reuse_s,
                Kind::Permission => true,
            }
    }
}

/// What everybody looks bindings up in.
#[derive(Clone)]
pub(crate) struct Readers {
    pub table: Table,
    pub objects: Arc<Objects>,
}

impl Readers {
    /// The binding that a key leads to.
    pub fn find(&self, key: &Key) -> Option<Binding<'_>> {
        self.number(key).map(|number| self.get(number))
    }

    /// The number of the binding that a key leads to.
    pub fn number(&self, key: &Key) -> Option<u32> {
        self.table.lookup(key).map(|index| index >> 1)
    }

    pub fn get(&self, number: u32) -> Binding<'_> {
        Binding(self.objects.get(number))
    }

    /// The mapping of an external end that sessions use.
    pub fn live_mapping_to(&self, external: End, protocol: IpProtocol) -> Option<Binding<'_>> {
        self.find(&mapping_to(external, protocol)).filter(|mapping| mapping.users() > 0)
    }
}

/// The owner's bindings.
pub(crate) struct Bindings {
    pub writer: Writer,
    pub read: Readers,
    counts: [usize; Kind::ALL.len()],
}

impl Bindings {
    pub fn new(writer: Writer) -> Bindings {
        let read = Readers { table: writer.table(), objects: writer.objects().clone() };
        Bindings { writer, read, counts: [0; Kind::ALL.len()] }
    }

    /// End all bindings and give the memory back (control thread).
    pub fn clear(&mut self) {
        self.writer.disable();
        self.counts = Default::default();
    }

    /// Live bindings of a kind.
    pub fn count(&self, kind: Kind) -> usize {
        self.counts[kind as usize]
    }

    /// Make a binding that nobody uses yet.
    pub fn make(
        &mut self,
        kind: Kind,
        keys: [Key; 2],
        now_s: u32,
        detail: u64,
    ) -> Result<u32, SessionError> {
        let [[a, b], [c, d]] = keys;
        let made = u64::from(now_s) | (kind as u64) << 32;
        let number = self.writer.insert([a, b, c, d, u64::from(now_s) << 32, made, detail, 0])?;
        self.counts[kind as usize] += 1;
        Ok(number)
    }

    /// The subscriber of an address inside, made when there is none.
    pub fn subscriber(
        &mut self,
        table: u32,
        address: u32,
        now_s: u32,
    ) -> Result<Binding<'_>, SessionError> {
        let keys = subscriber_keys(table, address);
        let number = match self.read.number(&keys[0]) {
            Some(number) => number,
            None => self.make(Kind::Subscriber, keys, now_s, 0)?,
        };
        Ok(self.read.get(number))
    }

    /// A subscriber may make one more session at this rate, which counts.
    pub fn is_within_rate(subscriber: Binding<'_>, rate: u32, now_ns: u64) -> bool {
        rate == 0 || subscriber.take_token(rate, (now_ns / 1_000_000) as u32)
    }

    /// Make the mapping of an end inside.
    pub fn make_mapping(
        &mut self,
        (inside, protocol, table): (End, IpProtocol, u32),
        external: End,
        (now_s, log): (u32, &mut Journal),
        provider: &Provider,
    ) -> Result<(), SessionError> {
        let block = provider.blocks.map(|blocks| blocks.index_of(external.port));
        let block = block.and_then(|index| self.read.number(&block_at(external.address, index)));
        let keys = [mapping_from(inside, protocol, table), mapping_to(external, protocol)];
        self.make(Kind::Mapping, keys, now_s, block.is_some().into())?;
        if let Some(number) = block {
            self.read.get(number).add_user(now_s);
        }
        if let Some(owner) = self.read.find(&subscriber_keys(table, inside.address)[0]) {
            owner.set_owned(owner.mappings() + 1, owner.blocks());
        }
        log.mapping(Event::MappingCreate, Flow::of(keys[0]), external);
        Ok(())
    }

    /// Make a subscriber's block number `nth`.
    pub fn make_block(
        &mut self,
        (table, address): (u32, u32),
        nth: u16,
        (external, index): (u32, u16),
        (now_s, log): (u32, &mut Journal),
        blocks: Blocks,
    ) -> Result<(), SessionError> {
        let keys = [block_of(table, address, nth), block_at(external, index)];
        self.make(Kind::Block, keys, now_s, 0)?;
        if let Some(owner) = self.read.find(&subscriber_keys(table, address)[0]) {
            owner.set_owned(owner.mappings(), owner.blocks() + 1);
        }
        log.block(Event::BlockAllocate, (table, address), external, blocks.ports(index));
        Ok(())
    }

    /// May the binding with this number make place for another one?
    pub fn is_over(&self, number: u32, now_s: u32, provider: &Provider) -> bool {
        self.writer.is_live(number) && self.read.get(number).is_over(now_s, provider)
    }

    /// End a binding, and its use of others.
    pub fn end(&mut self, number: u32, now_s: u32, provider: &Provider, log: &mut Journal) {
        if self.writer.is_live(number) {
            note_end(&self.read, self.read.get(number), (now_s, log), provider, &mut self.counts);
            self.writer.remove(number);
        }
    }

    /// A session with these flows begins: count it where its flags say.
    pub fn begin(&mut self, flows: (Flow, Flow), flags: Flags, now_s: u32, rules: &Rules) {
        let (_, outside) = flows;
        if flags.has(Flags::PERMITTED) {
            let keys =
                permission_keys(outside.destination, outside.source.address, outside.protocol);
            if self.read.number(&keys[0]).is_none() {
                // Without one the remote host must wait for a packet from inside.
                let _ = self.make(Kind::Permission, keys, now_s, 0);
            }
        }
        each_used(&self.read, flows, flags, &rules.provider, |used| used.add_user(now_s));
        if flags.has(Flags::COUNTED)
            && rules.provider.is_paired
            && flags.has(Flags::POOLED)
            && let Some(owner) =
                self.read.find(&subscriber_keys(flows.0.table, flows.0.source.address)[0])
        {
            owner.pair(outside.destination.address);
        }
    }

    /// Count what is no session yet where its session would be, or no more.
    pub fn hold(
        &self,
        flows: (Flow, Flow),
        flags: Flags,
        provider: &Provider,
        (is_held, now_s): (bool, u32),
    ) {
        each_used(&self.read, flows, flags, provider, |used| match is_held {
            true => used.add_user(now_s),
            false => used.drop_user(now_s),
        });
    }

    /// A session ends.
    pub fn release(&mut self, session: Session<'_>, now_s: u32, provider: &Provider) {
        let (inside, outside) =
            (session.flow(Direction::InToOut), session.flow(Direction::OutToIn));
        let flags = session.flags();
        each_used(&self.read, (inside, outside), flags, provider, |used| used.drop_user(now_s));
        // RFC 6888 REQ-8: a port whose connection was seen to end may be used again at once.
        let waits = provider.reuse_s > 0
            && flags.has(Flags::POOLED)
            && !flags.has(Flags::MAPPED)
            && !session.tcp().is_closed();
        if waits {
            let keys = [quarantined(inside), quarantined(outside)];
            // With no place left the port is free at once.
            let _ = self.make(Kind::Quarantine, keys, now_s, 0);
        }
    }

    /// Turn the clock hand over so many places.
    pub fn turn(&mut self, places: usize, now_s: u32, provider: &Provider, log: &mut Journal) {
        let is_over = |binding: Binding<'_>| binding.is_over(now_s, provider);
        self.end_where(places, (now_s, log), provider, is_over);
    }

    /// End the unused bindings for which `ends` holds among `places` from `first` on.
    pub fn end_from(
        &mut self,
        (first, places): (u32, u32),
        (now_s, log): (u32, &mut Journal),
        provider: &Provider,
        ends: impl Fn(Binding<'_>) -> bool,
    ) {
        self.writer.collect();
        for number in first..first.saturating_add(places) {
            let binding = self.read.get(number);
            if binding.users() == 0 && self.writer.is_live(number) && ends(binding) {
                self.end(number, now_s, provider, log);
            }
        }
    }

    /// End the unused bindings for which `ends` holds among the next `places`.
    fn end_where(
        &mut self,
        places: usize,
        (now_s, log): (u32, &mut Journal),
        provider: &Provider,
        ends: impl Fn(Binding<'_>) -> bool,
    ) {
        let Bindings { writer, read, counts } = self;
        writer.collect();
        writer.turn(places, |_, words| {
            let binding = Binding(words);
            let over = binding.users() == 0 && ends(binding);
            if over {
                note_end(read, binding, (now_s, &mut *log), provider, counts);
            }
            !over
        });
    }
}

/// What a binding that ends used of others.
fn note_end(
    read: &Readers,
    binding: Binding<'_>,
    (now_s, log): (u32, &mut Journal),
    provider: &Provider,
    counts: &mut [usize; Kind::ALL.len()],
) {
    let kind = binding.kind();
    counts[kind as usize] = counts[kind as usize].saturating_sub(1);
    let inside = binding.flow(Direction::InToOut);
    let owner = || read.find(&subscriber_keys(inside.table, inside.source.address)[0]);
    match kind {
        Kind::Mapping => {
            if let Some(owner) = owner() {
                owner.set_owned(owner.mappings().saturating_sub(1), owner.blocks());
            }
            let external = binding.flow(Direction::OutToIn).destination;
            log.mapping(Event::MappingDelete, inside, external);
            if let Some(blocks) = provider.blocks.filter(|_| binding.is_in_block())
                && let Some(block) =
                    read.find(&block_at(external.address, blocks.index_of(external.port)))
            {
                block.drop_user(now_s);
            }
        }
        Kind::Block => {
            if let Some(owner) = owner() {
                owner.set_owned(owner.mappings(), owner.blocks().saturating_sub(1));
            }
            if let Some(blocks) = provider.blocks {
                let at = binding.flow(Direction::OutToIn).destination;
                let ports = blocks.ports(at.port.saturating_sub(1));
                let host = (inside.table, inside.source.address);
                log.block(Event::BlockRelease, host, at.address, ports);
            }
        }
        Kind::Subscriber | Kind::Permission | Kind::Quarantine => {}
    }
}

/// The bindings that a session uses, by its flags.
fn each_used(
    read: &Readers,
    (inside, outside): (Flow, Flow),
    flags: Flags,
    provider: &Provider,
    each: impl Fn(Binding<'_>),
) {
    let external = outside.destination;
    let visit = |key: Key| {
        if let Some(binding) = read.find(&key) {
            each(binding);
        }
    };
    if flags.has(Flags::COUNTED) {
        visit(subscriber_keys(inside.table, inside.source.address)[0]);
    }
    if flags.has(Flags::LIMITED) {
        visit(subscriber_keys(inside.table, 0)[0]);
    }
    if flags.has(Flags::MAPPED) {
        visit(mapping_from(inside.source, inside.protocol, inside.table));
    }
    if flags.has(Flags::IN_BLOCK)
        && let Some(blocks) = provider.blocks
    {
        visit(block_at(external.address, blocks.index_of(external.port)));
    }
    if flags.has(Flags::PERMITTED) {
        visit(permission_keys(external, outside.source.address, outside.protocol)[0]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn binding(words: &[AtomicU64; WORDS]) -> Binding<'_> {
        Binding(words)
    }

    #[test]
    fn a_bucket_gives_one_second_of_tokens_and_fills_at_its_rate() {
        let words = std::array::from_fn(|_| AtomicU64::new(0));
        let subscriber = binding(&words);
        assert!((0..10).all(|_| subscriber.take_token(10, 5_000)));
        assert!(!subscriber.take_token(10, 5_000));
        assert!(!subscriber.take_token(10, 5_099), "not whole yet");
        assert!(subscriber.take_token(10, 5_100), "a tenth of a second is one");
        assert!((0..10).all(|_| subscriber.take_token(10, 9_000)));
        assert!(!subscriber.take_token(10, 9_000), "no more than a second's");
    }

    #[test]
    fn the_parts_of_a_subscriber_do_not_touch_one_another() {
        let words = std::array::from_fn(|_| AtomicU64::new(0));
        let subscriber = binding(&words);
        subscriber.pair(0xc000_0201);
        subscriber.set_owned(70_000, 8);
        assert_eq!(
            (subscriber.paired(), subscriber.mappings(), subscriber.blocks()),
            (0xc000_0201, 70_000, 8)
        );
        subscriber.add_user(7);
        subscriber.add_user(8);
        subscriber.drop_user(9);
        assert_eq!((subscriber.users(), subscriber.seen_s()), (1, 9));
    }

    #[test]
    fn keys_of_different_kinds_differ() {
        let (end, other) = (End { address: 5, port: 6 }, End { address: 7, port: 0 });
        let mut all = vec![
            block_of(3, 5, 5),
            block_at(5, 5),
            mapping_from(end, IpProtocol::UDP, 3),
            mapping_to(end, IpProtocol::UDP),
            mapping_from(other, IpProtocol::UDP, 3),
        ];
        all.extend(subscriber_keys(3, 5));
        all.extend(subscriber_keys(3, 0));
        all.extend(permission_keys(end, 7, IpProtocol::UDP));
        all.extend(permission_keys(end, 7, IpProtocol::TCP));
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
    }
}
