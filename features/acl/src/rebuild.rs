//! Lists that have changes beside them are compiled whole again, beside the router's work.

use std::collections::BTreeMap;
use std::sync::Arc;

use quiver_control::{Elsewhere, Refusal};
use quiver_core::Engine;

use crate::compiled::Compiled;
use crate::config::{Lists, not_compiled};

/// With so many changes a list is compiled whole at once, before there are too many.
const CHANGES_FROM: usize = 32;
/// With fewer, when none came for so long, nanoseconds.
const QUIET_NS: u64 = 2_000_000_000;
/// After a failure it is tried again so much later, then twice as much, and so on, nanoseconds.
const PAUSE_NS: u64 = 1_000_000_000;
/// At most.
const PAUSE_MAX_NS: u64 = 300_000_000_000;

/// Lists with changes.
#[derive(Default)]
struct Due {
    /// When the last change came.
    changed_ns: u64,
    /// It failed: not before this time.
    not_before_ns: u64,
    pause_ns: u64,
}

/// What is to be compiled whole, and what is being.
#[derive(Default)]
pub(crate) struct Rebuild {
    /// By the lists that are compiled as one.
    due: BTreeMap<Vec<u32>, Due>,
    under_way: Option<(Vec<u32>, Elsewhere<Compiled>)>,
}

impl Lists {
    /// These lists may have changes beside them now.
    pub fn note_changes(&mut self, set: &[u32], now_ns: u64) {
        if self.compiled.get(set).is_some_and(|compiled| compiled.changes() > 0) {
            self.rebuild.due.entry(set.to_vec()).or_default().changed_ns = now_ns;
        }
    }

    /// The lists that are to be compiled whole now, if there are some.
    fn next_due(&mut self, now_ns: u64) -> Option<(Vec<u32>, Arc<Compiled>)> {
        let compiled = &self.compiled;
        let changes = |set: &Vec<u32>| compiled.get(set).map_or(0, |compiled| compiled.changes());
        self.rebuild.due.retain(|set, _| changes(set) > 0);
        let is_due = |(set, due): &(&Vec<u32>, &Due)| {
            let is_quiet = now_ns.saturating_sub(due.changed_ns) >= QUIET_NS;
            now_ns >= due.not_before_ns && (is_quiet || changes(set) >= CHANGES_FROM)
        };
        let (set, _) = self.rebuild.due.iter().find(is_due)?;
        Some((set.clone(), compiled.get(set)?.clone()))
    }

    /// It failed: try later.
    fn pause(&mut self, set: &[u32], now_ns: u64, why: &Refusal) {
        if let Some(due) = self.rebuild.due.get_mut(set) {
            if due.pause_ns == 0 {
                tracing::warn!(lists = ?set, "access lists are not compiled again: {why}");
            }
            due.pause_ns = (due.pause_ns * 2).clamp(PAUSE_NS, PAUSE_MAX_NS);
            due.not_before_ns = now_ns + due.pause_ns;
        }
    }
}

/// Begin to compile what is due, or let workers ask what has been compiled.
pub(crate) fn turn(engine: &mut Engine) {
    let now_ns = engine.now_ns();
    let Some(lists) = engine.get_mut::<Lists>() else { return };
    if let Some((set, work)) = lists.rebuild.under_way.take() {
        match work.look() {
            Ok(None) => lists.rebuild.under_way = Some((set, work)),
            Ok(Some(compiled)) => exchange(engine, &set, compiled),
            Err(why) => lists.pause(&set, now_ns, &why),
        }
        return;
    }
    if lists.rebuild.due.is_empty() {
        return;
    }
    let Some((set, compiled)) = lists.next_due(now_ns) else { return };
    let acls = compiled.lists.clone();
    match Elsewhere::begin(move || Compiled::new(acls).map_err(not_compiled)) {
        Ok(work) => lists.rebuild.under_way = Some((set, work)),
        Err(why) => lists.pause(&set, now_ns, &why),
    }
}

/// Let workers ask what was compiled whole, with what changed meanwhile beside it.
fn exchange(engine: &mut Engine, set: &[u32], compiled: Compiled) {
    engine.with(|engine, lists: &mut Lists| {
        let Some(now) = lists.compiled.get(set) else { return };
        let compiled = match compiled.is_of(&now.lists) {
            true => Some(compiled),
            false => compiled.changed(&now.lists),
        };
        // With too many changes meanwhile, it is compiled again.
        if let Some(compiled) = compiled.filter(|compiled| compiled.changes() < now.changes()) {
            lists.exchange(engine, set, &Arc::new(compiled));
        }
    });
}
