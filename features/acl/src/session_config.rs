//! The session table of access lists, on the control thread.

use quiver_control::Refusal;
use quiver_core::{Engine, InterfaceId, NodeId, WorkerId};
use quiver_sessions::OWNER;
use quiver_tables::exact::{Limits, Seed};

use crate::config::Lists;
use crate::placing::Wants;
use crate::session::{Session, Writer};
use crate::slow_path::{SLOW_PATH, SlowPath};

/// Sessions that the table may be sized for; address space is reserved for so many.
pub(crate) const SESSIONS_MAX: usize = 1 << 24;
/// Sessions at most when nothing else is configured.
pub(crate) const SESSIONS_DEFAULT: usize = 131_072;
/// Bytes of a session, with its entry in the table: for answers, before the table is open.
const SESSION_BYTES: usize = 75;
/// Sessions that one worker call looks at.
const PLACES_PER_CALL: u32 = 4_096;
const LIMITS: Limits = Limits {
    what: "session table of access lists",
    entries_max: SESSIONS_MAX,
    remedy: "set acl-plugin session table max-entries",
};

/// Where sessions are.
pub(crate) struct SessionSpace {
    /// Sessions at most.
    pub most: usize,
    /// Has the owner the table?
    is_open: bool,
    /// While it is closed, from the first time on.
    writer: Option<Writer>,
    /// The epoch that was given last.
    epoch: u32,
}

impl Default for SessionSpace {
    fn default() -> SessionSpace {
        SessionSpace { most: SESSIONS_DEFAULT, is_open: false, writer: None, epoch: 0 }
    }
}

impl SessionSpace {
    /// A number that no sessions have; never 0.
    fn next_epoch(&mut self) -> u32 {
        self.epoch = self.epoch.wrapping_add(1).max(1);
        self.epoch
    }
}

fn slow_path(engine: &Engine) -> Result<NodeId, Refusal> {
    engine.node_id(SLOW_PATH).ok_or_else(|| Refusal::new("the node of sessions is not built in"))
}

/// Take the memory and let the owner have the table, unless it has it.
pub(crate) fn open(engine: &mut Engine, lists: &mut Lists) -> Result<(), Refusal> {
    if lists.room.is_open {
        return Ok(());
    }
    let node = slow_path(engine)?;
    let mut writer = match lists.room.writer.take() {
        Some(writer) => writer,
        None if lists.published().sessions.table().is_some() => {
            return Err(Refusal::new("the worker that has the sessions did not answer")
                .remedy("restart the router"));
        }
        None => {
            let writer = Writer::new(engine.epochs(), LIMITS, Seed::random());
            let writer = writer.map_err(|error| Refusal::new(error.to_string()))?;
            lists.published().sessions.set_table(writer.table(), writer.objects().clone());
            writer
        }
    };
    if let Err(error) = writer.enable(lists.room.most) {
        writer.disable();
        lists.room.writer = Some(writer);
        return Err(Refusal::new(error.to_string())
            .remedy("set acl-plugin session table max-entries to fewer"));
    }
    lists.published().sessions.note(&writer);
    let mut given = Some(Box::new(writer));
    let call = engine.call(OWNER, move |worker| {
        worker.visit::<SlowPath, _>(node, |node, _| node.writer = given.take());
    });
    call.map_err(|error| Refusal::new(error.to_string()))?;
    lists.room.is_open = true;
    Ok(())
}

/// Take the table from the owner and give its memory back. No interface may have sessions.
fn close(engine: &mut Engine, lists: &mut Lists) -> Result<(), Refusal> {
    let node = slow_path(engine)?;
    let taken = engine.call(OWNER, move |worker| {
        worker.visit::<SlowPath, _>(node, |node, _| node.writer.take()).flatten()
    });
    let writer = taken.map_err(|error| Refusal::new(error.to_string()))?;
    // Every worker has ended the pass in which it may have looked sessions up.
    for worker in 0..engine.worker_count() {
        let waited = engine.wait_for_worker(WorkerId(worker as u16));
        waited.map_err(|error| Refusal::new(error.to_string()))?;
    }
    if let Some(mut writer) = writer {
        writer.disable();
        lists.published().sessions.note(&writer);
        lists.room.writer = Some(*writer);
    }
    lists.room.is_open = false;
    Ok(())
}

/// Size the table; the bytes that it takes when it is full.
pub(crate) fn set_most(engine: &mut Engine, most: usize) -> Result<usize, Refusal> {
    engine.with(|engine, lists: &mut Lists| {
        if most != lists.room.most {
            if let Some(id) = lists.stateful().next() {
                let name = engine.interface_name(id);
                return Err(Refusal::new(format!(
                    "the access lists of {name} have sessions in the table"
                ))
                .remedy(format!(
                    "detach the lists with permit+reflect first (`show acl-plugin interface \
                     {name}`)"
                )));
            }
            if lists.room.is_open {
                close(engine, lists)?;
            }
            lists.room.most = most;
        }
        Ok(most * SESSION_BYTES)
    })
}

/// Before an interface has other lists: sessions are looked for where there may be some soon.
pub(crate) fn begin_epoch(lists: &mut Lists, id: InterfaceId, wants: Wants) {
    if wants.is_stateful && lists.published().sessions.epoch(id.index() as u32) == 0 {
        let epoch = lists.room.next_epoch();
        lists.published().sessions.set_epoch(id, epoch);
    }
}

/// Behind that: sessions are matched again, or end.
pub(crate) fn end_epoch(lists: &mut Lists, id: InterfaceId, wants: Wants) {
    let epoch = if wants.is_stateful { lists.room.next_epoch() } else { 0 };
    lists.published().sessions.set_epoch(id, epoch);
}

/// End all sessions, or those of an interface, some in each worker call.
pub(crate) fn clear(engine: &mut Engine, only: Option<InterfaceId>) -> Result<(), Refusal> {
    let node = slow_path(engine)?;
    let only = only.map(|id| id.index() as u32);
    let mut first = 0;
    loop {
        let ends = move |session: Session<'_>| only.is_none_or(|id| id == session.interface());
        let places = engine.call(OWNER, move |worker| {
            worker.visit::<SlowPath, _>(node, |node, _| {
                node.end_from((first, PLACES_PER_CALL), &ends)
            })
        });
        let places = places.map_err(|error| Refusal::new(error.to_string()))?;
        first += PLACES_PER_CALL;
        if first as usize >= places.unwrap_or(0) {
            return Ok(());
        }
    }
}
