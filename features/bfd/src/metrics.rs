//! What Prometheus reads of BFD sessions.

use quiver_core::Engine;
use quiver_metrics::{Family, Labels, Scope, collect, collect_each, sampled};
use quiver_wire::bfd::State;

use crate::config::Bfd;
use crate::shared::Live;

const STATES: [State; 4] = [State::AdminDown, State::Down, State::Init, State::Up];

pub(crate) fn start(engine: &mut Engine) {
    collect(engine, |engine, text| {
        text.family(&Family::gauge("quiver_bfd_sessions", "BFD sessions, by state"));
        let Some(bfd) = engine.get::<Bfd>() else { return };
        let mut counts = [0; STATES.len()];
        for entry in bfd.sessions.values() {
            counts[live(bfd, entry.place.slot).state as usize % STATES.len()] += 1;
        }
        for (state, count) in STATES.iter().zip(counts) {
            text.count(&Labels::new([("state", &state.name())]), count);
        }
    });
    let families = vec![
        sampled(
            Family::gauge("quiver_bfd_session_up", "1 while both ends hear each other"),
            |engine: &Engine, text, slot: &u16, labels: &Labels| {
                let up = engine.get::<Bfd>().map(|bfd| live(bfd, *slot).state == State::Up);
                text.count(labels, u64::from(up == Some(true)));
            },
        ),
        sampled(
            Family::counter("quiver_bfd_session_changes_total", "Changes of a session's state"),
            |engine: &Engine, text, slot: &u16, labels: &Labels| {
                let changes = engine.get::<Bfd>().map_or(0, |bfd| live(bfd, *slot).change);
                text.count(labels, changes.into());
            },
        ),
    ];
    collect_each(engine, sessions, families);
}

/// As the session's worker published it last.
fn live(bfd: &Bfd, slot: u16) -> Live {
    bfd.writer.shared().live(slot)
}

fn sessions(engine: &Engine, _: Scope) -> Vec<(u16, Labels)> {
    let all = engine.get::<Bfd>().into_iter().flat_map(|bfd| &bfd.sessions);
    let labelled = |id| engine.interface_name(id);
    all.map(|(ends, entry)| {
        let interface = ends.interface.map(labelled).unwrap_or_default();
        let member = if ends.is_member { "yes" } else { "no" };
        let labels = Labels::new([
            ("interface", &interface),
            ("local", &ends.local),
            ("peer", &ends.peer),
            ("member", &member),
        ]);
        (entry.place.slot, labels)
    })
    .collect()
}
