//! NAT66 enabled and disabled: its memory goes to the owner and comes back.

use std::hash::{BuildHasher, RandomState};

use quiver_bindings::control::{refusal, wait_for_workers};
use quiver_bindings::{Bindings, Filtering};
use quiver_control::Refusal;
use quiver_core::Engine;
use quiver_sessions::OWNER;
use quiver_tables::exact::{Limits, Seed};

use crate::config::{
    Enabled, Nat66, STATIC_MAPPINGS_MAX, hold, publish, set_place, slow_path, table6, with_enabled,
};
use crate::owner::Owner;
use crate::session::Writer;
use crate::slow_path::SlowPath;

/// Sessions that may be enabled; address space is reserved for so many.
const SESSIONS_MAX: usize = 1 << 24;
const SESSION_LIMITS: Limits = Limits {
    what: "NAT66 session table",
    entries_max: SESSIONS_MAX,
    remedy: "enable fewer sessions",
};
const BINDING_LIMITS: Limits = Limits {
    what: "NAT66 bindings",
    entries_max: bindings_of(SESSIONS_MAX),
    remedy: "enable fewer sessions",
};

/// Bindings, subscribers and permissions of so many sessions at most, and configured mappings.
const fn bindings_of(sessions: usize) -> usize {
    3 * sessions + STATIC_MAPPINGS_MAX
}

fn new_writers(engine: &Engine) -> Result<(Writer, Bindings), Refusal> {
    let sessions = Writer::new(engine.epochs(), SESSION_LIMITS, Seed::random());
    let held = quiver_bindings::Writer::new(engine.epochs(), BINDING_LIMITS, Seed::random());
    Ok((sessions.map_err(refusal)?, Bindings::new(held.map_err(refusal)?)))
}

/// Take memory for so many sessions, and let the owner have them.
pub(crate) fn enable(engine: &mut Engine, wanted: Enabled) -> Result<(), Refusal> {
    let node = slow_path(engine)?;
    table6(engine, wanted.outside_vrf)?;
    engine.with(|engine, nat: &mut Nat66| {
        if let Some(enabled) = nat.enabled {
            if enabled == wanted {
                return Ok(());
            }
            let what = format!("NAT66 is enabled for {} sessions already", enabled.sessions);
            return Err(Refusal::new(what).remedy("nat66 plugin disable"));
        }
        let (mut writer, mut held) = match nat.writers.take() {
            Some(writers) => writers,
            None if nat.shared.table().is_some() => {
                return Err(Refusal::new("the worker that has the sessions did not answer")
                    .remedy("restart the router"));
            }
            None => {
                let (writer, held) = new_writers(engine)?;
                let read = held.read.clone();
                nat.shared.set_table(writer.table(), writer.objects().clone(), read);
                (writer, held)
            }
        };
        let taken = writer.enable(wanted.sessions);
        if let Err(error) = taken.and_then(|()| held.writer.enable(bindings_of(wanted.sessions))) {
            writer.disable();
            held.disable();
            nat.writers = Some((writer, held));
            return Err(refusal(error).remedy("enable fewer sessions"));
        }
        let seed = RandomState::new().hash_one(1);
        let mut owner = Some(Box::new(Owner::new(writer, held, seed)));
        let given = engine.call(OWNER, move |worker| {
            worker.visit::<SlowPath, _>(node, |node, _| node.owner = owner.take());
        });
        given.map_err(refusal)?;
        nat.enabled = Some(wanted);
        hold(engine, wanted.outside_vrf, true);
        publish(engine, nat);
        Ok(())
    })
}

/// End all sessions, forget the configuration and give the memory back.
pub(crate) fn disable(engine: &mut Engine) -> Result<(), Refusal> {
    let node = slow_path(engine)?;
    with_enabled(engine, |engine, nat| {
        let all: Vec<_> = nat.places.iter().map(|(id, place)| (*id, *place)).collect();
        for (id, place) in all {
            set_place(engine, nat, id, place, false)?;
        }
        let tenants = nat.tenants();
        nat.pool.clear();
        nat.pool_interfaces.clear();
        nat.statics.clear();
        nat.whole.clear();
        nat.filtering = Filtering::default();
        nat.limit = None;
        publish(engine, nat);
        let taken = engine.call(OWNER, move |worker| {
            worker.visit::<SlowPath, _>(node, |node, _| node.owner.take()).flatten()
        });
        let owner = taken.map_err(refusal)?;
        // Every worker has ended the pass in which it may have seen the features.
        wait_for_workers(engine)?;
        if let Some(owner) = owner {
            let Owner { mut writer, mut bindings, .. } = *owner;
            writer.disable();
            bindings.disable();
            nat.shared.note(&writer, &bindings);
            nat.writers = Some((writer, bindings));
        }
        tenants.into_iter().for_each(|vrf| hold(engine, vrf, false));
        hold(engine, nat.enabled()?.outside_vrf, false);
        nat.enabled = None;
        Ok(())
    })
}
