//! The flows of one worker.

use quiver_core::cpu::Variant;
use quiver_export::records::Recorder;
use quiver_sessions::places_of_turn;
use quiver_tables::exact::NOT_FOUND;

use crate::flow::{self, EndReason, FlowRecord, KEY_WORDS, Table, Writer};
use crate::key::FlowKey;
use crate::shared::Timers;

/// Keys that are looked up in step.
const BATCH: usize = 64;
/// A connection that TCP has ended is exported after so long without a packet, milliseconds.
const ENDED_MS: u64 = 1_000;

/// Flows, and the ring of their records.
pub(crate) struct Flows {
    pub writer: Writer,
    table: Table,
    recorder: Recorder<FlowRecord>,
}

impl Flows {
    pub fn new(writer: Writer, recorder: Recorder<FlowRecord>) -> Flows {
        let table = writer.table();
        Flows { writer, table, recorder }
    }

    /// Count the packets of a block. Returns how many belong to no flow, since the table is full.
    pub fn count(&mut self, variant: Variant, now_ms: u64, keys: &[FlowKey]) -> u64 {
        let mut missed = 0;
        for keys in keys.chunks(BATCH) {
            let mut wanted = [[0; KEY_WORDS]; BATCH];
            for (wanted, key) in wanted.iter_mut().zip(keys) {
                *wanted = key.words;
            }
            let mut found = [NOT_FOUND; BATCH];
            let count = keys.len().min(BATCH);
            self.table.lookup_slice(variant, &wanted[..count], &mut found[..count]);
            for (key, found) in keys.iter().zip(found) {
                let session = match found {
                    _ if key.packets == 0 => continue,
                    NOT_FOUND => match self.make(key, now_ms) {
                        Some(session) => session,
                        None => {
                            missed += u64::from(key.packets);
                            continue;
                        }
                    },
                    found => found,
                };
                flow::add(self.writer.objects().get(session), key, now_ms);
            }
        }
        missed
    }

    /// A flow for a packet that has none, unless one before it in the block has made it.
    #[cold]
    #[inline(never)]
    fn make(&mut self, key: &FlowKey, now_ms: u64) -> Option<u32> {
        match self.writer.get(&key.words) {
            Some((session, _)) => Some(session),
            None => self.writer.insert(flow::begin(key, now_ms)).ok(),
        }
    }

    /// Turn the clock hand: export what is due.
    pub fn turn(&mut self, now_ms: u64, timers: &Timers<'_>) {
        let places = places_of_turn(self.writer.places());
        self.turn_over(places, now_ms, timers);
    }

    /// Turn the clock hand over so many flows.
    pub fn turn_over(&mut self, places: usize, now_ms: u64, timers: &Timers<'_>) {
        let Flows { writer, recorder, .. } = self;
        writer.turn(places, |_, words| {
            let mut record = FlowRecord::of(words, EndReason::Idle);
            let (idle_ms, age_ms) =
                (now_ms.saturating_sub(record.last_ms()), now_ms.saturating_sub(record.first_ms()));
            let reason = if timers.is_forced(&record) {
                EndReason::Forced
            } else if record.is_ended() && idle_ms >= ENDED_MS {
                EndReason::EndOfFlow
            } else if idle_ms >= timers.passive_ms {
                EndReason::Idle
            } else if age_ms >= timers.active_ms {
                EndReason::Active
            } else {
                return true;
            };
            // A flow without packets since its last record has nothing to say.
            if record.packets() > 0 {
                record.reason = reason;
                recorder.write(record);
                flow::clear(words);
            }
            reason == EndReason::Active
        });
        writer.collect();
    }
}
