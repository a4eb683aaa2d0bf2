//! The flows of one worker.

use quiver_core::InterfaceId;
use quiver_core::cpu::{Body, Variant, prefetch};
use quiver_export::records::Recorder;
use quiver_sessions::places_of_turn;
use quiver_tables::exact::NOT_FOUND;
use quiver_tables::sessions::SessionError;

use crate::flow::{self, EndReason, FlowRecord, Objects, SECOND_LINE, Table, Writer};
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
    /// Flows of keys that were looked up.
    found: [u32; BATCH],
    recorder: Recorder<FlowRecord>,
}

/// At most [`BATCH`] packets that are counted, each with its key.
struct Counting<'b> {
    table: &'b Table,
    objects: &'b Objects,
    variant: Variant,
    now_ms: u64,
    keys: &'b [FlowKey],
    /// As long as the keys.
    found: &'b mut [u32],
    missing: &'b mut [bool],
}

impl Body for Counting<'_> {
    type Answer = ();

    #[inline(always)]
    fn run(self) {
        let Counting { objects, now_ms, keys, found, .. } = self;
        self.table.lookup_slice(self.variant, keys, found);
        if keys.first().is_some_and(|key| key.frame_octets != 0) {
            for session in found.iter().filter(|found| **found != NOT_FOUND) {
                prefetch(&objects.get(*session)[SECOND_LINE]);
            }
        }
        for ((key, found), missing) in keys.iter().zip(found).zip(self.missing) {
            // A packet that is not recorded has a key that no flow has.
            let is_there = *found != NOT_FOUND;
            *missing = !is_there & (key.packets != 0);
            if is_there {
                flow::add(objects.get(*found), key, now_ms);
            }
        }
    }
}

impl Flows {
    pub fn new(writer: Writer, recorder: Recorder<FlowRecord>) -> Flows {
        let table = writer.table();
        Flows { writer, table, found: [NOT_FOUND; BATCH], recorder }
    }

    /// Count the packets of a block that belong to flows; `missing` says which have none yet.
    pub fn count(&mut self, variant: Variant, now_ms: u64, keys: &[FlowKey], missing: &mut [bool]) {
        let Flows { writer, table, found, .. } = self;
        for (keys, missing) in keys.chunks(BATCH).zip(missing.chunks_mut(BATCH)) {
            let (objects, found) = (&**writer.objects(), &mut found[..keys.len().min(BATCH)]);
            variant.run(Counting { table, objects, variant, now_ms, keys, found, missing });
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
