//! Changes of the peer, done to the tables of the owner. What is there afterwards is what a packet
//! would have made: the binding that a session needs is made with it.

use std::ops::Range;

use quiver_bindings::{Flags, inside_key};
use quiver_nat_log::Event;
use quiver_standby_sessions::change::{Change, ChangeKind, Host};
use quiver_standby_sessions::outcome::{FromPeer, Outcome, Undone};
use quiver_translation::flow::End;
use quiver_translation::tcp::Direction;
use quiver_translation::versions::address::Prefix;
use quiver_translation::versions::ends::Ports;

use crate::bindings::{narrow, outside_key, release};
use crate::owner::Owner;
use crate::session::{self, Inside, NewSession, Session};
use crate::tables::Rules;

/// The flow of a change's packets of IPv6 as it is here, where a prefix may have another number.
fn inside_of(rules: &Rules, change: &Change) -> Option<(Inside, Prefix)> {
    let Host::Ip6 { host, remote } = change.host else { return None };
    let (flow, outside) = (change.inside, change.outside);
    let rule = rules.prefix_of(flow.table, remote)?;
    let remote = rule.prefix.extract(remote).filter(|remote| *remote == outside.source.address)?;
    let ports = Ports { source: flow.source.port, destination: flow.destination.port };
    let (protocol, table, prefix) = (flow.protocol, flow.table, rule.number);
    Some((Inside { host, remote, ports, protocol, table, prefix }, rule.prefix))
}

impl Owner {
    /// Do what the peer tells.
    pub fn apply(&mut self, rules: &Rules, change: &Change, peer: FromPeer, outcome: &Outcome) {
        self.log.set_now(peer.now_ns);
        self.log.set_silent(true);
        let done = match change.kind {
            ChangeKind::SessionCreate | ChangeKind::SessionRefresh | ChangeKind::SessionBulk => {
                self.put_session(rules, change, peer, outcome)
            }
            ChangeKind::SessionDelete => self.end_session(rules, change, peer, outcome),
            ChangeKind::BulkBegin | ChangeKind::BulkEnd => Ok(()),
            ChangeKind::MappingCreate
            | ChangeKind::MappingDelete
            | ChangeKind::BlockAllocate
            | ChangeKind::BlockRelease => Err(Undone::Refused),
        };
        self.log.set_silent(false);
        outcome.note(done);
    }

    fn put_session(
        &mut self,
        rules: &Rules,
        change: &Change,
        peer: FromPeer,
        outcome: &Outcome,
    ) -> Result<(), Undone> {
        let (inside, prefix) = inside_of(rules, change).ok_or(Undone::Refused)?;
        let Change { outside, tcp, .. } = *change;
        let seen_s = peer.now_s().saturating_sub(change.idle_s);
        let keys = [inside.key(), session::outside_key(outside.key())];
        for (key, direction) in keys.into_iter().zip([0, 1]) {
            let Some((number, found)) = self.writer.get(&key) else { continue };
            let session = Session(self.writer.objects().get(number));
            let is_same =
                found == direction && session.inside() == inside && session.outside() == outside;
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
            self.remove_session(number);
        }
        let external = outside.destination;
        let is_known = rules.external.contains_key(&external.address);
        if !is_known || outside.table != rules.outside_table {
            return Err(Undone::Refused);
        }
        let binding = self.ensure_binding(rules, &inside, external)?;
        let is_hairpin = rules.external.contains_key(&inside.remote);
        let new = NewSession {
            inside,
            prefix,
            external,
            outside_table: rules.outside_table,
            binding,
            flags: if is_hairpin { Flags::HAIRPIN } else { Flags::default() },
            now_s: seen_s,
            first: (Direction::InToOut, 0),
        };
        let made = match new.outside() == outside {
            true => self.make(rules, new, |new| new.peer_words(peer.mark, tcp)).ok(),
            false => None,
        };
        let Some(number) = made else {
            let Owner { bindings, log, .. } = self;
            bindings.discard(binding, |binding| log.binding(Event::MappingDelete64, binding));
            return Err(Undone::Refused);
        };
        self.log.note_peer(number, seen_s, tcp);
        outcome.count(|outcome| &outcome.made);
        Ok(())
    }

    /// The binding of a host's end to an external one, made when there is none.
    fn ensure_binding(
        &mut self,
        rules: &Rules,
        inside: &Inside,
        external: End,
    ) -> Result<u32, Undone> {
        let Inside { host, ports, protocol, table, .. } = *inside;
        let from = inside_key(host, ports.source, protocol, table);
        let to = outside_key(external, protocol, rules.outside_table);
        for key in [&from, &to] {
            let Some(number) = self.bindings.read.number(key) else { continue };
            let known = self.bindings.read.get(number);
            let is_same = (known.host(), known.table()) == ((host, ports.source), table)
                && narrow(known.external()) == external;
            if is_same {
                return Ok(number);
            }
            if known.users() > 0 || known.is_static() {
                return Err(Undone::Kept);
            }
            let Owner { bindings, log, .. } = self;
            bindings.discard(number, |binding| log.binding(Event::MappingDelete64, binding));
        }
        self.bindings.bind(from, to, false).map_err(|_| Undone::Refused)
    }

    fn end_session(
        &mut self,
        rules: &Rules,
        change: &Change,
        peer: FromPeer,
        outcome: &Outcome,
    ) -> Result<(), Undone> {
        let (inside, _) = inside_of(rules, change).ok_or(Undone::Refused)?;
        let Some((number, 0)) = self.writer.get(&inside.key()) else { return Ok(()) };
        let session = Session(self.writer.objects().get(number));
        if session.mark() == 0 || session.outside() != change.outside {
            return Err(Undone::Kept);
        }
        session.set_by_peer(session.seen_s(), peer.mark, change.tcp);
        self.remove_session(number);
        outcome.count(|outcome| &outcome.ended);
        Ok(())
    }

    fn remove_session(&mut self, number: u32) {
        let Owner { writer, bindings, log, .. } = self;
        release(bindings, Session(writer.objects().get(number)), log);
        writer.remove(number);
    }

    /// End the sessions among `places` from `first` on whose mark is in `marks`.
    pub fn sweep(&mut self, (first, places): (u32, u32), marks: &Range<u32>, outcome: &Outcome) {
        for number in first..first.saturating_add(places) {
            if self.writer.is_live(number)
                && marks.contains(&Session(self.writer.objects().get(number)).mark())
            {
                self.remove_session(number);
                outcome.count(|outcome| &outcome.swept);
            }
        }
    }
}
