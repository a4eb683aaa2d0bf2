//! Lists that have changes beside them are compiled whole again, beside the router's work.

use std::sync::Arc;

use quiver_control::Elsewhere;
use quiver_core::Engine;

use crate::compiled::Compiled;
use crate::config::{Lists, not_compiled};

/// With so many changes a list is compiled whole at once, before there are too many.
const CHANGES_FROM: usize = 32;
/// With fewer, when none came for so long, nanoseconds.
const QUIET_NS: u64 = 2_000_000_000;

/// What is compiled again.
#[derive(Default)]
pub(crate) struct Rebuild {
    /// The lists by number, and the work.
    under_way: Option<(Vec<u32>, Elsewhere<Compiled>)>,
    /// When lists were changed last.
    changed_ns: u64,
}

impl Rebuild {
    /// Lists were changed.
    pub fn note(&mut self, now_ns: u64) {
        self.changed_ns = now_ns;
    }
}

/// A turn of the control thread.
pub(crate) fn turn(engine: &mut Engine) {
    let now_ns = engine.now_ns();
    let Some(lists) = engine.get_mut::<Lists>() else { return };
    let Some((set, work)) = lists.rebuild.under_way.take() else {
        return begin(lists, now_ns);
    };
    match work.look() {
        Ok(None) => lists.rebuild.under_way = Some((set, work)),
        Ok(Some(compiled)) => exchange(engine, &set, compiled),
        // Packets meet the changes as before, and a change too many tells why.
        Err(_) => lists.rebuild.note(now_ns),
    }
}

/// Compile the lists with the most changes, if it is time.
fn begin(lists: &mut Lists, now_ns: u64) {
    let is_quiet = now_ns.saturating_sub(lists.rebuild.changed_ns) >= QUIET_NS;
    let from = if is_quiet { 1 } else { CHANGES_FROM };
    let most = lists.compiled.iter().max_by_key(|(_, compiled)| compiled.changes());
    let Some((set, compiled)) = most.filter(|(_, compiled)| compiled.changes() >= from) else {
        return;
    };
    let acls = compiled.lists.clone();
    let work = Elsewhere::begin(move || Compiled::new(acls).map_err(not_compiled));
    lists.rebuild.under_way = work.ok().map(|work| (set.clone(), work));
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
        if let Some(compiled) = compiled {
            lists.exchange(engine, set, &Arc::new(compiled));
        }
    });
}
