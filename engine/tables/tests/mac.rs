//! The MAC table against a naive model: joins and leaves, flushes, learning, moves, configured
//! entries, ageing, in any order; and readers beside the writer.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use proptest::prelude::*;
use quiver_core::cpu::Variant;
use quiver_core::memory::epoch::Epochs;
use quiver_core::{InterfaceId, NodeId};
use quiver_tables::exact::Seed;
use quiver_tables::mac::{
    Configured, DomainIndex, Gone, Learned, MacEntry, MacKey, MacWriter, Seen, StampMinutes, Swept,
};
use quiver_wire::MacAddress;

const PORTS: u32 = 4;

#[derive(Clone, Copy, Debug)]
enum Act {
    Join {
        port: u32,
        domain: usize,
    },
    Leave {
        port: u32,
    },
    Flush {
        port: u32,
    },
    Learn {
        port: u32,
        mac: u64,
    },
    Configure {
        port: u32,
        mac: u64,
        domain: usize,
        is_static: bool,
        is_filter: bool,
    },
    Filter {
        mac: u64,
        domain: usize,
    },
    Remove {
        mac: u64,
        domain: usize,
    },
    Minutes(u16),
    Sweep {
        segments: usize,
    },
    Limit {
        domain: usize,
        limit: usize,
    },
    /// All entries that hold are the model's.
    Compare,
}

fn act() -> impl Strategy<Value = Act> {
    let (port, mac, domain) = (0..PORTS, 0..40u64, 0..2usize);
    prop_oneof![
        2 => (port.clone(), domain.clone()).prop_map(|(port, domain)| Act::Join { port, domain }),
        1 => port.clone().prop_map(|port| Act::Leave { port }),
        1 => port.clone().prop_map(|port| Act::Flush { port }),
        12 => (port.clone(), mac.clone()).prop_map(|(port, mac)| Act::Learn { port, mac }),
        2 => (port, mac.clone(), domain.clone(), any::<bool>(), any::<bool>()).prop_map(
            |(port, mac, domain, is_static, is_filter)| Act::Configure { port, mac, domain,
            is_static, is_filter }
        ),
        1 => (mac.clone(), domain.clone()).prop_map(|(mac, domain)| Act::Filter { mac, domain }),
        1 => (mac, domain.clone()).prop_map(|(mac, domain)| Act::Remove { mac, domain }),
        1 => (1..4u16).prop_map(Act::Minutes),
        2 => (1..3usize).prop_map(|segments| Act::Sweep { segments }),
        1 => (domain, 0..30usize).prop_map(|(domain, limit)| Act::Limit { domain, limit }),
        2 => Just(Act::Compare),
    ]
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Known {
    port: Option<u32>,
    configured: bool,
    fixed: bool,
    filter: bool,
    stamp: u16,
}

/// What the table should do, with nothing that makes it fast. Minutes are small, so that an age of
/// 2 is due.
#[derive(Default)]
struct Model {
    known: BTreeMap<(usize, u64), Known>,
    domain_of: BTreeMap<u32, usize>,
    now: u16,
}

const AGE: u16 = 2;

struct Pair {
    model: Model,
    writer: MacWriter,
    domains: [DomainIndex; 2],
}

impl Pair {
    fn new() -> Pair {
        let mut writer = MacWriter::new(&Epochs::new(1), 100_000, Seed::fixed(3)).expect("memory");
        let domains = [writer.open_domain().expect("room"), writer.open_domain().expect("room")];
        Pair { model: Model::default(), writer, domains }
    }

    fn key(&self, domain: usize, mac: u64) -> MacKey {
        MacKey::new(self.domains[domain], MacAddress::from_u64(0x0200_0000_0000 + mac))
    }

    fn seen(&self, port: u32) -> Seen {
        self.writer.table().expected(InterfaceId(port), StampMinutes(self.model.now))
    }

    fn act(&mut self, act: Act) -> Result<(), TestCaseError> {
        match act {
            Act::Join { port, domain } => {
                if let Entry::Vacant(place) = self.model.domain_of.entry(port) {
                    place.insert(domain);
                    self.writer.join(
                        InterfaceId(port),
                        self.domains[domain],
                        NodeId(port as u16 + 1),
                        0,
                    );
                }
            }
            Act::Leave { port } => {
                if self.model.domain_of.remove(&port).is_some() {
                    self.writer.leave(InterfaceId(port));
                    self.model.known.retain(|_, known| known.port != Some(port));
                }
            }
            Act::Flush { port } => {
                if self.model.domain_of.contains_key(&port) {
                    self.writer.flush(InterfaceId(port));
                    self.model
                        .known
                        .retain(|_, known| known.port != Some(port) || known.configured);
                }
            }
            Act::Learn { port, mac } => self.learn(port, mac)?,
            Act::Configure { port, mac, domain, is_static, is_filter } => {
                let member = self.model.domain_of.get(&port) == Some(&domain);
                let entry = Configured {
                    port: Some(InterfaceId(port)),
                    is_static,
                    is_filter,
                    is_bvi: false,
                    far_end: None,
                };
                let done = self.writer.configure(
                    self.key(domain, mac),
                    entry,
                    StampMinutes(self.model.now),
                );
                prop_assert_eq!(done.is_ok(), member);
                if member {
                    let known = Known {
                        port: Some(port),
                        configured: true,
                        fixed: is_static | is_filter,
                        filter: is_filter,
                        stamp: self.model.now,
                    };
                    self.model.known.insert((domain, mac), known);
                }
            }
            Act::Filter { mac, domain } => {
                let entry = Configured {
                    port: None,
                    is_static: false,
                    is_filter: true,
                    is_bvi: false,
                    far_end: None,
                };
                let done = self.writer.configure(
                    self.key(domain, mac),
                    entry,
                    StampMinutes(self.model.now),
                );
                prop_assert!(done.is_ok());
                let stamp = self.model.now;
                let known =
                    Known { port: None, configured: true, fixed: true, filter: true, stamp };
                self.model.known.insert((domain, mac), known);
            }
            Act::Remove { mac, domain } => {
                self.writer.remove(self.key(domain, mac));
                self.model.known.remove(&(domain, mac));
            }
            Act::Minutes(minutes) => {
                self.model.now += minutes;
                self.writer.want_sweep();
            }
            Act::Sweep { segments } => self.sweep(segments)?,
            Act::Limit { domain, limit } => {
                self.writer.set_domain_learn_limit(self.domains[domain], limit);
            }
            Act::Compare => self.compare()?,
        }
        Ok(())
    }

    /// As a worker and the control thread together do.
    fn learn(&mut self, port: u32, mac: u64) -> Result<(), TestCaseError> {
        let seen = self.seen(port);
        let Some(domain) = self.model.domain_of.get(&port).copied() else {
            prop_assert_eq!(self.writer.learn(self.key(0, mac), seen), Learned::TooLate);
            return Ok(());
        };
        let key = self.key(domain, mac);
        let table = self.writer.table();
        let old = table.lookup(key);
        let place = (domain, mac);
        if let Some(known) =
            self.model.known.get_mut(&place).filter(|known| known.port == Some(port))
        {
            prop_assert!(old.holds(table.ports().word(old.port())));
            known.stamp = self.model.now;
            prop_assert!(table.refresh(key, old, seen));
            prop_assert!(table.lookup(key).is_current(seen) || known.filter);
            return Ok(());
        }
        prop_assert!(!old.is_current(seen));
        let counts = self.writer.counts(self.domains[domain]);
        let learned = self.writer.learn(key, seen);
        let before = self.model.known.get(&place).copied();
        let new = Known {
            port: Some(port),
            configured: false,
            fixed: false,
            filter: false,
            stamp: self.model.now,
        };
        match before {
            Some(known) if known.fixed => prop_assert_eq!(learned, Learned::Stands),
            _ if learned == Learned::DomainFull => {
                prop_assert!(counts.learned >= counts.learn_limit);
                prop_assert!(table.ports().is_full(self.domains[domain]));
            }
            Some(known) => {
                let from = InterfaceId(known.port.expect("a filter without a port is fixed"));
                prop_assert_eq!(learned, Learned::Moved { from });
                self.model.known.insert(place, new);
            }
            None => {
                prop_assert_eq!(learned, Learned::New);
                self.model.known.insert(place, new);
            }
        }
        Ok(())
    }

    fn sweep(&mut self, segments: usize) -> Result<(), TestCaseError> {
        let now = self.model.now;
        let mut aged = Vec::new();
        self.writer.sweep(
            StampMinutes(now),
            segments,
            |_| Some(AGE),
            |key, _, why| {
                if why == Gone::Aged {
                    aged.push(key);
                }
            },
        );
        for key in aged {
            let domain = usize::from(key.domain() == self.domains[1]);
            let mac = key.mac().to_u64() - 0x0200_0000_0000;
            let known = self.model.known.remove(&(domain, mac));
            prop_assert!(known.is_some_and(|known| !known.configured && now - known.stamp > AGE));
        }
        Ok(())
    }

    fn compare(&self) -> Result<(), TestCaseError> {
        let table = self.writer.table();
        for domain in 0..2 {
            for mac in 0..40 {
                let known = self.model.known.get(&(domain, mac));
                let entry = self.writer.get(self.key(domain, mac));
                prop_assert_eq!(entry.is_some(), known.is_some(), "{} {}", domain, mac);
                let (Some(known), Some(entry)) = (known, entry) else { continue };
                prop_assert_eq!(table.lookup(self.key(domain, mac)), entry);
                prop_assert_eq!(entry.is_filter(), known.filter);
                prop_assert_eq!(entry.is_configured(), known.configured);
                prop_assert_eq!(entry.is_static(), known.fixed);
                prop_assert_eq!(entry.stamp(), StampMinutes(known.stamp));
                prop_assert_eq!((!entry.has_no_port()).then(|| entry.port().0), known.port);
            }
        }
        let learned = self.model.known.values().filter(|known| !known.configured).count();
        prop_assert_eq!(self.writer.iter().count(), self.model.known.len());
        prop_assert!(self.writer.learned() >= learned);
        Ok(())
    }
}

proptest! {
    #[test]
    fn the_table_equals_a_naive_model(acts in proptest::collection::vec(act(), 1..300)) {
        let mut pair = Pair::new();
        for act in acts {
            pair.act(act)?;
        }
        pair.compare()?;
        // Swept whole, nothing is left of what does not hold, and the counts are exact.
        pair.writer.want_sweep();
        while pair.writer.sweep(StampMinutes(pair.model.now), 1, |_| None, |_, _, _| ())
            == Swept::More
        {}
        pair.compare()?;
        prop_assert_eq!(pair.writer.len(), pair.model.known.len());
        let learned = pair.model.known.values().filter(|known| !known.configured).count();
        prop_assert_eq!(pair.writer.learned(), learned);
    }

    #[test]
    fn keys_are_what_they_were_made_of(
        domain in any::<u16>(), mac in any::<[u8; 6]>(), behind in any::<u16>()
    ) {
        let key = MacKey::new(DomainIndex(domain), MacAddress(mac));
        prop_assert_eq!((key.domain(), key.mac()), (DomainIndex(domain), MacAddress(mac)));
        let mut wire = [0; 8];
        wire[..6].copy_from_slice(&mac);
        wire[6..].copy_from_slice(&behind.to_be_bytes());
        prop_assert_eq!(MacKey::from_wire(DomainIndex(domain), u64::from_le_bytes(wire)), key);
    }
}

#[test]
fn a_closed_domains_number_is_used_again_only_when_it_is_swept() {
    let mut pair = Pair::new();
    let closed = pair.domains[0];
    let filter =
        Configured { port: None, is_static: false, is_filter: true, is_bvi: false, far_end: None };
    pair.writer.configure(pair.key(0, 1), filter, StampMinutes(0)).expect("room");
    pair.writer.close_domain(closed);
    assert_eq!(pair.writer.get(pair.key(0, 1)), None);
    assert_ne!(pair.writer.open_domain().expect("room"), closed);
    while pair.writer.sweep(StampMinutes(0), 1, |_| None, |_, _, _| ()) != Swept::All {}
    assert_eq!(pair.writer.len(), 0);
    assert_eq!(pair.writer.open_domain().expect("room"), closed);
}

#[test]
fn a_port_that_is_flushed_a_thousand_times_forgets_each_time() {
    let mut pair = Pair::new();
    pair.act(Act::Join { port: 1, domain: 0 }).expect("joins");
    for round in 0..1000u64 {
        pair.act(Act::Learn { port: 1, mac: round % 40 }).expect("learns");
        let key = pair.key(0, round % 40);
        assert!(pair.writer.get(key).is_some());
        pair.act(Act::Flush { port: 1 }).expect("flushes");
        assert_eq!(pair.writer.iter().count(), 0, "round {round}");
        let old = pair.writer.table().lookup(key);
        assert!(!old.holds(pair.writer.table().ports().word(InterfaceId(1))), "round {round}");
    }
}

#[test]
fn a_full_table_learns_no_more_and_what_it_knows_stays() {
    let mut writer = MacWriter::new(&Epochs::new(1), 50, Seed::fixed(1)).expect("memory");
    let domain = writer.open_domain().expect("room");
    writer.join(InterfaceId(3), domain, NodeId(9), 0);
    let seen = writer.table().expected(InterfaceId(3), StampMinutes(5));
    let key = |n: u64| MacKey::new(domain, MacAddress::from_u64(0x0200_0000_0000 + n));
    let learned: Vec<_> = (0..60).map(|n| writer.learn(key(n), seen)).collect();
    assert!(learned[..50].iter().all(|learned| *learned == Learned::New));
    assert!(learned[50..].iter().all(|learned| *learned == Learned::TableFull));
    assert!(writer.table().ports().is_full(domain));
    assert!((0..50).all(|n| writer.get(key(n)).is_some()));
    writer.remove(key(7)).expect("known");
    assert!(!writer.table().ports().is_full(domain));
}

#[test]
fn no_more_is_learned_than_the_table_takes_whichever_limit_is_set_first() {
    let mut writer = MacWriter::new(&Epochs::new(1), 50, Seed::fixed(1)).expect("memory");
    writer.set_learn_limit(40);
    for (entries_max, learn_limit) in [(45, 40), (60, 40), (30, 30), (70, 70), (50, 50)] {
        writer.set_entries_max(entries_max).expect("below the capacity");
        assert_eq!(writer.learn_limit(), learn_limit, "of {entries_max}");
    }
}

/// Readers that know what must be there, while the writer learns, moves and sweeps: an answer is
/// always that key's, on one of the ports where it was.
#[test]
fn readers_beside_the_writer_see_whole_entries() {
    const MACS: u64 = 5000;
    let epochs = Epochs::new(2);
    let mut writer = MacWriter::new(&epochs, 100_000, Seed::fixed(9)).expect("memory");
    let domain = writer.open_domain().expect("room");
    (1..=2).for_each(|port| writer.join(InterfaceId(port), domain, NodeId(port as u16), 0));
    let key = move |n: u64| MacKey::new(domain, MacAddress::from_u64(0x0200_0000_0000 + n));
    let seen =
        |writer: &MacWriter, port| writer.table().expected(InterfaceId(port), StampMinutes(1));
    // The even ones are always there, and move; the odd ones come and go on port 1.
    for n in (0..MACS).step_by(2) {
        assert_eq!(writer.learn(key(n), seen(&writer, 1)), Learned::New);
    }
    let (table, done) = (writer.table(), Arc::new(AtomicBool::new(false)));
    let readers: Vec<_> = (0..2)
        .map(|index| {
            let (table, done) = (table.clone(), done.clone());
            let mut reader = epochs.reader(index);
            std::thread::spawn(move || {
                reader.wake();
                let mut refreshed = 0u64;
                while !done.load(Ordering::Relaxed) {
                    for first in (0..MACS).step_by(256) {
                        let keys: Vec<u64> = (first..first + 256).map(|n| key(n).word()).collect();
                        let mut found = vec![MacEntry::NONE; keys.len()];
                        table.lookup_slice(Variant::best(), &keys, &mut found);
                        for (n, found) in (first..).zip(&found) {
                            let holds = found.holds(table.ports().word(found.port()));
                            assert!(n % 2 == 1 || n >= MACS || holds, "{n} is gone");
                            assert!(
                                !holds || matches!(found.port().0, 1 | 2),
                                "{n} at {:?}",
                                found.port()
                            );
                            let now =
                                table.expected(found.port(), StampMinutes(2 + (n % 7) as u16));
                            refreshed += u64::from(holds && table.refresh(key(n), *found, now));
                        }
                        reader.quiescent();
                    }
                }
                reader.sleep();
                refreshed
            })
        })
        .collect();
    for round in 0..60u64 {
        for n in 0..MACS {
            let port = if n % 2 == 1 { 1 } else { 1 + (round % 2) as u32 };
            if n % 2 == 1 && round % 3 == 2 {
                writer.remove(key(n));
            } else {
                writer.learn(key(n), seen(&writer, port));
                let now = writer.get(key(n)).expect("learned just now");
                assert_eq!(now.port().0, port, "a worker's refresh never undoes a move");
            }
        }
        writer.want_sweep();
        while writer.sweep(StampMinutes(2), 1, |_| None, |_, _, _| ()) == Swept::More {}
    }
    done.store(true, Ordering::Relaxed);
    assert!(readers.into_iter().all(|reader| reader.join().expect("no reader fails") > 0));
}
