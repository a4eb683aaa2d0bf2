//! Changes of the peer, done to the tables of the owner. What is there afterwards is what a packet
//! would have made: bindings that a session needs are made with it.

use quiver_standby_sessions::change::{Change, ChangeKind, Host};
use quiver_standby_sessions::outcome::{FromPeer, Outcome, Undone};
use quiver_translation::flow::Flow;

use crate::bindings::{Bindings, block_at, block_of, mapping_from, mapping_to, subscriber_address};
use crate::owned::{Owner, release_softwires};
use crate::session::{Direction, Flags, NewSession, Session};
use crate::softwires::B4Number;
use crate::standby::journal::Journal;
use crate::tables::Rules;

/// Numbers that a subscriber's blocks may have, whatever is configured.
const BLOCK_NUMBERS: u16 = 64;

/// The host of a change that limits and blocks count.
fn subscriber_of(inside: &Flow) -> (u32, u32) {
    (inside.table, subscriber_address(inside.table, inside.source.address))
}

impl Owner {
    /// Do what the peer tells.
    pub fn apply(&mut self, rules: &Rules, change: &Change, peer: FromPeer, outcome: &Outcome) {
        self.log.set_now(peer.now_ns);
        self.log.set_silent(true);
        let change = self.with_own_table(rules, change, peer);
        let done = match change {
            Ok(Some(change)) => self.apply_here(rules, &change, peer, outcome),
            Ok(None) => Ok(()),
            Err(undone) => Err(undone),
        };
        self.log.set_silent(false);
        outcome.note(done);
    }

    /// A change whose hosts have the tables that they have here: behind a B4 that is the B4's
    /// number. `None` when a B4 that is not known loses something.
    fn with_own_table(
        &mut self,
        rules: &Rules,
        change: &Change,
        peer: FromPeer,
    ) -> Result<Option<Change>, Undone> {
        let Change { mut inside, mut outside, .. } = *change;
        let near = match change.host {
            Host::Ip4 => None,
            Host::Ip6 { .. } => return Err(Undone::Refused),
            Host::BehindB4(address) => Some(address),
        };
        for (b4, flow) in [(near, &mut inside), (change.remote_b4, &mut outside)] {
            let Some(address) = b4 else { continue };
            let Some(b4) = self.own_b4(rules, change.kind, address, peer)? else {
                return Ok(None);
            };
            flow.table = b4.table();
        }
        Ok(Some(Change { inside, outside, ..*change }))
    }

    /// The number of a B4 here, which is given to it when there is none: a B4 that gets nothing
    /// after all is forgotten by the clock hand. `None` for one that is not known and loses
    /// something.
    fn own_b4(
        &mut self,
        rules: &Rules,
        kind: ChangeKind,
        address: u128,
        peer: FromPeer,
    ) -> Result<Option<B4Number>, Undone> {
        let softwires = self.softwires.as_mut().ok_or(Undone::Refused)?;
        let ends = matches!(
            kind,
            ChangeKind::SessionDelete | ChangeKind::MappingDelete | ChangeKind::BlockRelease
        );
        match softwires.number(address) {
            Some(known) => Ok(Some(known)),
            None if ends => Ok(None),
            None if !softwires.may_be(&rules.aftr, address) => Err(Undone::Refused),
            None => {
                let made = softwires.make(address, rules.aftr.limit, peer.now_s());
                made.map(Some).map_err(|_| Undone::Refused)
            }
        }
    }

    fn apply_here(
        &mut self,
        rules: &Rules,
        change: &Change,
        peer: FromPeer,
        outcome: &Outcome,
    ) -> Result<(), Undone> {
        match change.kind {
            ChangeKind::SessionCreate | ChangeKind::SessionRefresh | ChangeKind::SessionBulk => {
                self.put_session(rules, change, peer, outcome)
            }
            ChangeKind::SessionDelete => self.end_session(rules, change, peer, outcome),
            ChangeKind::MappingCreate => self.put_mapping(rules, change, peer),
            ChangeKind::BlockAllocate => self.put_block(rules, change, peer),
            ChangeKind::MappingDelete | ChangeKind::BlockRelease => {
                self.end_binding(rules, change, peer);
                Ok(())
            }
            ChangeKind::BulkBegin | ChangeKind::BulkEnd => Ok(()),
        }
    }

    fn put_session(
        &mut self,
        rules: &Rules,
        change: &Change,
        peer: FromPeer,
        outcome: &Outcome,
    ) -> Result<(), Undone> {
        let Change { inside, outside, tcp, .. } = *change;
        let seen_s = peer.now_s().saturating_sub(change.idle_s);
        for (flow, direction) in [(inside, 0), (outside, 1)] {
            let Some((number, found)) = self.writer.get(&flow.key()) else { continue };
            let session = Session(self.writer.objects().get(number));
            let is_same = found == direction
                && session.flow(Direction::InToOut) == inside
                && session.flow(Direction::OutToIn) == outside;
            let is_ours = session.mark() == 0;
            if is_same && is_ours && session.seen_s() > seen_s {
                return Err(Undone::Kept);
            }
            if is_same {
                session.set_by_peer(seen_s, peer.mark, tcp);
                self.log.note_peer(number, seen_s, tcp);
                outcome.count(|outcome| &outcome.refreshed);
                return Ok(());
            }
            // Another session has this end.
            if is_ours {
                return Err(Undone::Kept);
            }
            self.remove_session(rules, number, peer);
        }
        if !rules.external.contains_key(&outside.destination.address) {
            return Err(Undone::Refused);
        }
        let flags = self.ensure_bindings(rules, change, peer)?;
        let new =
            NewSession { inside, outside, flags, now_s: seen_s, first: (Direction::InToOut, 0) };
        let words = new.peer_words(peer.mark, tcp);
        let number = self.writer.insert(words).map_err(|_| Undone::Refused)?;
        if let Some(bindings) = &mut self.bindings {
            bindings.begin((inside, outside), flags, peer.now_s(), rules);
        }
        if let Some(softwires) = &self.softwires {
            softwires.begin([inside.table, outside.table], peer.now_s());
        }
        self.log.note_peer(number, seen_s, tcp);
        outcome.count(|outcome| &outcome.made);
        Ok(())
    }

    fn end_session(
        &mut self,
        rules: &Rules,
        change: &Change,
        peer: FromPeer,
        outcome: &Outcome,
    ) -> Result<(), Undone> {
        let Some((number, 0)) = self.writer.get(&change.inside.key()) else { return Ok(()) };
        let session = Session(self.writer.objects().get(number));
        if session.mark() == 0 || session.flow(Direction::OutToIn) != change.outside {
            return Err(Undone::Kept);
        }
        session.set_by_peer(session.seen_s(), peer.mark, change.tcp);
        self.remove_session(rules, number, peer);
        outcome.count(|outcome| &outcome.ended);
        Ok(())
    }

    fn remove_session(&mut self, rules: &Rules, number: u32, peer: FromPeer) {
        let session = Session(self.writer.objects().get(number));
        self.algs.forget(number, session);
        if let Some(bindings) = &mut self.bindings {
            bindings.release(session, peer.now_s(), &rules.provider);
        }
        release_softwires(self.softwires.as_deref(), session, peer.now_s());
        self.writer.remove(number);
    }

    /// End the sessions among `places` from `first` on whose mark is in `marks`.
    pub fn sweep(
        &mut self,
        rules: &Rules,
        (first, places): (u32, u32),
        marks: std::ops::Range<u32>,
        (peer, outcome): (FromPeer, &Outcome),
    ) {
        for number in first..first.saturating_add(places) {
            if self.writer.is_live(number)
                && marks.contains(&Session(self.writer.objects().get(number)).mark())
            {
                self.remove_session(rules, number, peer);
                outcome.count(|outcome| &outcome.swept);
            }
        }
    }

    /// The bindings that a session needs; its flags here.
    fn ensure_bindings(
        &mut self,
        rules: &Rules,
        change: &Change,
        peer: FromPeer,
    ) -> Result<Flags, Undone> {
        let Owner { bindings, log, .. } = self;
        let flags = Flags(change.flags);
        let Some(bindings) = bindings else { return Ok(flags.without_bindings()) };
        let Change { inside, outside, .. } = *change;
        let now_s = peer.now_s();
        if flags.has(Flags::LIMITED) {
            bindings.subscriber(inside.table, 0, now_s).map_err(|_| Undone::Refused)?;
        }
        if flags.has(Flags::COUNTED) {
            let (table, host) = subscriber_of(&inside);
            bindings.subscriber(table, host, now_s).map_err(|_| Undone::Refused)?;
        }
        if flags.has(Flags::IN_BLOCK) {
            ensure_block(bindings, log, rules, change, now_s)?;
        }
        if flags.has(Flags::MAPPED) {
            let from = mapping_from(inside.source, inside.protocol, inside.table);
            ensure_mapping(bindings, log, rules, (from, &inside, &outside), now_s)?;
        }
        Ok(flags)
    }

    fn put_mapping(
        &mut self,
        rules: &Rules,
        change: &Change,
        peer: FromPeer,
    ) -> Result<(), Undone> {
        if !rules.external.contains_key(&change.outside.destination.address) {
            return Err(Undone::Refused);
        }
        let Owner { bindings, log, .. } = self;
        let bindings = bindings.as_mut().ok_or(Undone::Refused)?;
        let Change { inside, outside, .. } = change;
        let from = mapping_from(inside.source, inside.protocol, inside.table);
        ensure_mapping(bindings, log, rules, (from, inside, outside), peer.now_s())
    }

    fn put_block(&mut self, rules: &Rules, change: &Change, peer: FromPeer) -> Result<(), Undone> {
        if !rules.external.contains_key(&change.outside.destination.address) {
            return Err(Undone::Refused);
        }
        let Owner { bindings, log, .. } = self;
        let bindings = bindings.as_mut().ok_or(Undone::Refused)?;
        ensure_block(bindings, log, rules, change, peer.now_s())
    }

    /// A mapping or a block ends that nobody uses here. One that is in use ends with its last user.
    fn end_binding(&mut self, rules: &Rules, change: &Change, peer: FromPeer) {
        let Owner { bindings: Some(bindings), log, .. } = self else { return };
        let external = change.outside.destination;
        let key = match (change.kind, rules.provider.blocks) {
            (ChangeKind::MappingDelete, _) => mapping_to(external, change.inside.protocol),
            (_, Some(blocks)) => block_at(external.address, blocks.index_of(external.port)),
            (_, None) => return,
        };
        let Some(number) = bindings.read.number(&key) else { return };
        if bindings.read.get(number).users() == 0 {
            bindings.end(number, peer.now_s(), &rules.provider, log);
        }
    }
}

/// The mapping of an end inside, made when there is none.
fn ensure_mapping(
    bindings: &mut Bindings,
    log: &mut Journal,
    rules: &Rules,
    (from, inside, outside): ([u64; 2], &Flow, &Flow),
    now_s: u32,
) -> Result<(), Undone> {
    let external = outside.destination;
    let to = mapping_to(external, inside.protocol);
    for number in [from, to].iter().filter_map(|key| bindings.read.number(key)) {
        let known = bindings.read.get(number);
        let own = known.flow(Direction::InToOut);
        if own.key() == from && known.flow(Direction::OutToIn).destination == external {
            return Ok(());
        }
        if known.users() > 0 {
            return Err(Undone::Kept);
        }
    }
    // Others that have one of both ends are not used any more.
    for key in [from, to] {
        if let Some(number) = bindings.read.number(&key) {
            bindings.end(number, now_s, &rules.provider, log);
        }
    }
    if rules.provider.blocks.is_some() {
        let mut block = Change::new(ChangeKind::BlockAllocate);
        (block.inside, block.outside) = (*inside, *outside);
        ensure_block(bindings, log, rules, &block, now_s)?;
    }
    let host = subscriber_of(inside);
    bindings.subscriber(host.0, host.1, now_s).map_err(|_| Undone::Refused)?;
    let source = (inside.source, inside.protocol, inside.table);
    let made = bindings.make_mapping(source, external, (now_s, log), &rules.provider);
    made.map_err(|_| Undone::Refused)
}

/// The block of the external port of a change, made when there is none. Its number among those of
/// its host is the first free one: what it is called matters to nobody else.
fn ensure_block(
    bindings: &mut Bindings,
    log: &mut Journal,
    rules: &Rules,
    change: &Change,
    now_s: u32,
) -> Result<(), Undone> {
    let Some(blocks) = rules.provider.blocks else { return Ok(()) };
    let host = subscriber_of(&change.inside);
    let external = change.outside.destination;
    let index = blocks.index_of(external.port);
    if external.port < blocks.first_port(0) || index >= blocks.per_address() {
        return Err(Undone::Refused);
    }
    if let Some(number) = bindings.read.number(&block_at(external.address, index)) {
        let block = bindings.read.get(number);
        let own = block.flow(Direction::InToOut);
        if (own.table, own.source.address) == host {
            return Ok(());
        }
        if block.users() > 0 {
            return Err(Undone::Kept);
        }
        bindings.end(number, now_s, &rules.provider, log);
    }
    let is_free = |nth: &u16| bindings.read.find(&block_of(host.0, host.1, *nth)).is_none();
    let nth = (0..BLOCK_NUMBERS).find(is_free).ok_or(Undone::Refused)?;
    bindings.subscriber(host.0, host.1, now_s).map_err(|_| Undone::Refused)?;
    let place = (external.address, index);
    bindings.make_block(host, nth, place, (now_s, log), blocks).map_err(|_| Undone::Refused)
}
