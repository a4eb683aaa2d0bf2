//! Sessions: against a naive model, over their limit, and with a reader beside the owner.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use proptest::prelude::*;
use quiver_core::cpu::Variant;
use quiver_core::memory::epoch::Epochs;
use quiver_tables::exact::{Limits, NOT_FOUND, Seed};
use quiver_tables::sessions::{SessionError, SessionsWriter};

type Writer = SessionsWriter<8, 2>;

const LIMITS: Limits = Limits { what: "session table", entries_max: 1 << 20, remedy: "allow more" };

fn writer(epochs: &Arc<Epochs>, sessions: usize) -> Writer {
    let mut writer = Writer::new(epochs, LIMITS, Seed::fixed(5)).expect("memory");
    writer.enable(sessions).expect("room");
    writer
}

/// In the place of a number in the keys of direction 1: no session has it.
const FAR: u64 = u64::MAX;

/// Keys of a session: its number and 7 in one direction, in the other `FAR` and the number.
fn content(number: u64) -> [u64; 8] {
    [number, 7, FAR, number, 0, 0, 0, number]
}

#[test]
fn both_keys_lead_to_a_session_and_its_direction_until_it_ends() {
    let epochs = Epochs::new(0);
    let mut writer = writer(&epochs, 100);
    let table = writer.table();
    let session = writer.insert(content(3)).expect("room");
    let mut found = [0; 3];
    table.lookup_slice(Variant::best(), &[[3, 7], [FAR, 3], [FAR, 4]], &mut found);
    assert_eq!(found, [2 * session, 2 * session + 1, NOT_FOUND]);
    let clash = writer.insert([1, 1, FAR, 3, 0, 0, 0, 0]);
    assert!(matches!(clash, Err(SessionError::Collides { direction: 1 })));
    assert!(writer.get(&[1, 1]).is_none(), "a refused session leaves nothing");
    assert!(writer.remove(session) && !writer.remove(session));
    table.lookup_slice(Variant::best(), &[[3, 7], [FAR, 3], [FAR, 4]], &mut found);
    assert_eq!(found, [NOT_FOUND; 3]);
}

#[test]
fn a_session_is_used_again_only_after_every_worker_has_ended_its_pass() {
    let epochs = Epochs::new(1);
    let mut reader = epochs.reader(0);
    reader.wake();
    let mut writer = writer(&epochs, 1);
    let session = writer.insert(content(1)).expect("room");
    assert!(matches!(writer.insert(content(2)), Err(SessionError::Full { sessions_max: 1 })));
    writer.remove(session);
    assert!(matches!(writer.insert(content(2)), Err(SessionError::Waiting)));
    assert_eq!(writer.objects().get(session)[7].load(Ordering::Relaxed), 1, "still readable");
    reader.quiescent();
    assert_eq!(writer.insert(content(2)).expect("the pass has ended"), session);
}

#[test]
fn every_session_that_was_reserved_can_be_made_and_memory_comes_back() {
    let epochs = Epochs::new(0);
    let mut writer = writer(&epochs, 300_000);
    for round in 0..2 {
        for number in 0..300_000 {
            writer.insert(content(round << 32 | number)).expect("reserved");
        }
        assert!(matches!(writer.insert(content(1 << 40)), Err(SessionError::Full { .. })));
        let (mut looked, mut ended) = (0, 0);
        while looked < 300_000 {
            ended += writer.turn(1000, |_, _| false);
            looked += 1000;
        }
        assert_eq!((ended, writer.len()), (300_000, 0));
        writer.collect();
    }
    writer.disable();
    assert!(writer.resident_bytes() < 8 << 20, "{}", writer.resident_bytes());
    writer.enable(10).expect("again");
    writer.insert(content(1)).expect("again");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// Random insertions, ends and turns of the hand against a map.
    #[test]
    fn sessions_equal_a_naive_model(steps: Vec<(u8, u8)>) {
        let epochs = Epochs::new(0);
        let mut writer = writer(&epochs, 64);
        let mut model: HashMap<u64, u32> = HashMap::new();
        for (what, number) in steps {
            let number = u64::from(number);
            match what % 4 {
                0 | 1 => match writer.insert(content(number)) {
                    Ok(session) => prop_assert_eq!(model.insert(number, session), None),
                    Err(SessionError::Collides { .. }) => {
                        prop_assert!(model.contains_key(&number));
                    }
                    Err(_) => prop_assert_eq!(model.len(), 64),
                },
                2 => {
                    let found = writer.get(&[number, 7]).map(|(session, _)| session);
                    prop_assert_eq!(found, model.remove(&number));
                    prop_assert!(found.is_none_or(|found| writer.remove(found)));
                }
                _ => {
                    let odd = |words: &[AtomicU64; 8]| words[7].load(Ordering::Relaxed) % 2 == 1;
                    let before = model.len();
                    let ended = writer.turn(usize::MAX, |_, words| odd(words));
                    model.retain(|number, _| number % 2 == 1);
                    prop_assert_eq!(ended, before - model.len());
                }
            }
            prop_assert_eq!(writer.len(), model.len());
            for (number, session) in &model {
                prop_assert_eq!(writer.get(&[*number, 7]), Some((*session, 0)));
                prop_assert_eq!(writer.get(&[FAR, *number]), Some((*session, 1)));
            }
        }
    }
}

/// A reader that finds a session reads the words that belong to its key for a whole pass, while
/// the owner ends sessions and makes others.
#[test]
fn a_reader_never_finds_another_sessions_words() {
    let epochs = Epochs::new(1);
    let mut reader = epochs.reader(0);
    let mut writer = writer(&epochs, 64);
    let (table, objects) = (writer.table(), writer.objects().clone());
    let done = Arc::new(AtomicBool::new(false));
    let seen = done.clone();
    let thread = std::thread::spawn(move || {
        let mut hits = 0u64;
        reader.wake();
        while !seen.load(Ordering::Relaxed) {
            let keys: [[u64; 2]; 64] = std::array::from_fn(|number| [number as u64, 7]);
            let mut found = [0; 64];
            table.lookup_slice(Variant::best(), &keys, &mut found);
            for (key, index) in keys.iter().zip(found).filter(|(_, index)| *index != NOT_FOUND) {
                let words = objects.get(index >> 1);
                assert_eq!(words[7].load(Ordering::Relaxed), key[0]);
                hits += 1;
            }
            reader.quiescent();
        }
        reader.sleep();
        hits
    });
    for step in 0..200_000u64 {
        let number = step.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58;
        match writer.get(&[number, 7]) {
            Some((session, _)) => assert!(writer.remove(session)),
            None => drop(writer.insert(content(number))),
        }
        if step % 16 == 0 {
            writer.collect();
        }
    }
    done.store(true, Ordering::Relaxed);
    thread.join().expect("reader");
    writer.turn(usize::MAX, |_, _| false);
    assert!(writer.is_empty());
}
