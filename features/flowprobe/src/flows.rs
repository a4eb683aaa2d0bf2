//! The flows of one worker.

use quiver_core::InterfaceId;
use quiver_core::cpu::{Variant, prefetch};
use quiver_export::records::Recorder;
use quiver_sessions::places_of_turn;
use quiver_tables::exact::NOT_FOUND;
use quiver_tables::sessions::SessionError;

use crate::flow::{self, EndReason, FlowRecord, KEY_WORDS, SECOND_LINE, Table, Writer};
use crate::key::{FlowKey, Link};
use crate::shared::Timers;

/// Keys that are looked up in step: those of a block.
const BATCH: usize = 128;
/// A connection that TCP has ended is exported after so long without a packet, milliseconds.
const ENDED_MS: u64 = 1_000;

/// Flows, and the ring of their records.
pub(crate) struct Flows {
    pub writer: Writer,
    table: Table,
    /// Keys that are looked up, and their flows.
    wanted: [[u64; KEY_WORDS]; BATCH],
    found: [u32; BATCH],
    recorder: Recorder<FlowRecord>,
}

impl Flows {
    pub fn new(writer: Writer, recorder: Recorder<FlowRecord>) -> Flows {
        let table = writer.table();
        let (wanted, found) = ([[0; KEY_WORDS]; BATCH], [NOT_FOUND; BATCH]);
        Flows { writer, table, wanted, found, recorder }
    }

    /// Count the packets of a block that belong to flows; `missing` says which have none yet.
    pub fn count(&mut self, variant: Variant, now_ms: u64, keys: &[FlowKey], missing: &mut [bool]) {
        for (keys, missing) in keys.chunks(BATCH).zip(missing.chunks_mut(BATCH)) {
            self.find(variant, keys);
            let objects = &**self.writer.objects();
            for ((key, found), missing) in keys.iter().zip(&self.found).zip(missing) {
                // A packet that is not recorded has a key that no flow has.
                let is_there = *found != NOT_FOUND;
                *missing = !is_there & (key.packets != 0);
                if is_there {
                    flow::add(objects.get(*found), key, now_ms);
                }
            }
        }
    }

    /// Find the flows of at most [`BATCH`] keys.
    #[inline(always)]
    fn find(&mut self, variant: Variant, keys: &[FlowKey]) {
        let Flows { writer, table, wanted, found, .. } = self;
        let count = keys.len().min(BATCH);
        for (wanted, key) in wanted.iter_mut().zip(keys) {
            *wanted = key.words;
        }
        table.lookup_slice(variant, &wanted[..count], &mut found[..count]);
        if keys.first().is_some_and(|key| key.frame_octets != 0) {
            let objects = writer.objects();
            for session in found[..count].iter().filter(|found| **found != NOT_FOUND) {
                prefetch(&objects.get(*session)[SECOND_LINE]);
            }
        }
    }

    /// Count a packet that had no flow: it begins one, unless a packet before it has done so.
    ///
    /// # Errors
    /// The table is full.
    pub fn begin(
        &mut self,
        now_ms: u64,
        key: &FlowKey,
        link: &Link,
        other: InterfaceId,
    ) -> Result<(), SessionError> {
        let session = match self.writer.get(&key.words) {
            Some((session, _)) => session,
            None => self.writer.insert(flow::begin(key, link, other, now_ms))?,
        };
        flow::add(self.writer.objects().get(session), key, now_ms);
        Ok(())
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
