//! Memory for sessions, taken when NAT44 is enabled and given back when it is disabled.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::Ordering;

use quiver_control::Refusal;
use quiver_core::Engine;
use quiver_sessions::OWNER;
use quiver_tables::exact::{Limits, Seed};

use super::{
    Enabled, Nat44, SESSIONS_MAX, end_sessions, hold, publish, slow_path, table_index,
    wait_for_workers, with_enabled,
};
use crate::alg::Algs;
use crate::alg::expected::{self, Expected};
use crate::owned::Owner;
use crate::owner::SlowPath;
use crate::provider::{self, Settings};
use crate::session::Writer;
use crate::softwires;
use crate::tables::Sides;
use crate::{mappings, sides};

const LIMITS: Limits = Limits {
    what: "NAT44 session table",
    entries_max: SESSIONS_MAX,
    remedy: "enable fewer sessions",
};

/// Take memory for so many sessions, and let the owner have them.
pub(crate) fn enable(engine: &mut Engine, wanted: Enabled) -> Result<(), Refusal> {
    let node = slow_path(engine)?;
    table_index(engine, wanted.inside_vrf)?;
    table_index(engine, wanted.outside_vrf)?;
    engine.with(|engine, nat: &mut Nat44| {
        if let Some(enabled) = nat.enabled {
            if enabled == wanted {
                return Ok(());
            }
            return Err(Refusal::new(format!(
                "NAT44 is enabled for {} sessions already",
                enabled.sessions
            ))
            .remedy("nat44 plugin disable"));
        }
        let expected = expected::take_writer(engine, nat)?;
        let mut writer = match nat.writer.take() {
            Some(writer) => writer,
            None if nat.shared.table().is_some() => {
                return Err(Refusal::new("the worker that has the sessions did not answer")
                    .remedy("restart the router"));
            }
            None => {
                let writer = Writer::new(engine.epochs(), LIMITS, Seed::random());
                let writer = writer.map_err(|error| Refusal::new(error.to_string()))?;
                nat.shared.set_table(writer.table(), writer.objects().clone());
                writer
            }
        };
        if let Err(error) = writer.enable(wanted.sessions) {
            writer.disable();
            nat.writer = Some(writer);
            nat.expected_writer = Some(expected);
            return Err(Refusal::new(error.to_string()).remedy("enable fewer sessions"));
        }
        let algs = Algs::new(Expected::new(expected));
        if nat.shared.expected().is_none() {
            nat.shared.set_expected(algs.expected.read());
        }
        let (seed, log) = (RandomState::new().hash_one(1), quiver_nat_log::open(engine));
        let mut owner = Some(Box::new(Owner::new(writer, algs, seed, log)));
        let given = engine.call(OWNER, move |worker| {
            worker.visit::<SlowPath, _>(node, |node, _| node.owner = owner.take());
        });
        given.map_err(|error| Refusal::new(error.to_string()))?;
        nat.enabled = Some(wanted);
        hold(engine, wanted.inside_vrf, true);
        hold(engine, wanted.outside_vrf, true);
        publish(engine, nat);
        Ok(())
    })
}

/// End all sessions, forget the configuration and give the memory back.
pub(crate) fn disable(engine: &mut Engine) -> Result<(), Refusal> {
    let node = slow_path(engine)?;
    with_enabled(engine, |_, _| Ok(()))?;
    quiver_standby_sessions::forget::<Nat44>(engine)?;
    with_enabled(engine, |engine, nat| {
        let all: Vec<_> = nat.sides.keys().copied().collect();
        for id in all {
            sides::set(engine, nat, id, Sides::default())?;
        }
        softwires::config::forget(engine, nat)?;
        if quiver_nat_log::is_on(engine) {
            // Packets that came before make sessions until every worker has ended its pass.
            wait_for_workers(engine)?;
            end_sessions(engine, |_| true)?;
            provider::end_bindings(engine, |_| true)?;
        }
        let taken = engine.call(OWNER, move |worker| {
            worker.visit::<SlowPath, _>(node, |node, _| node.owner.take()).flatten()
        });
        let owner = taken.map_err(|error| Refusal::new(error.to_string()))?;
        // Every worker has ended the pass in which it may have seen the features.
        wait_for_workers(engine)?;
        let enabled = nat.enabled()?;
        if let Some(owner) = owner {
            let Owner { mut writer, bindings, mut algs, .. } = *owner;
            writer.disable();
            nat.shared.note_sessions(&writer);
            nat.shared.most_sessions.store(0, Ordering::Relaxed);
            nat.writer = Some(writer);
            algs.expected.writer.disable();
            nat.expected_writer = Some(algs.expected.writer);
            if let Some(mut bindings) = bindings {
                bindings.clear();
                nat.shared.note_bindings(&bindings);
                nat.binding_writer = Some(bindings.writer);
            }
        }
        nat.has_bindings = false;
        let vrfs = nat.pool.values().flatten().copied();
        let vrfs: Vec<_> = vrfs
            .chain(mappings::vrfs(nat))
            .chain(provider::vrfs(nat))
            .chain([enabled.inside_vrf, enabled.outside_vrf])
            .collect();
        vrfs.into_iter().for_each(|vrf| hold(engine, vrf, false));
        nat.pool.clear();
        nat.pool_interfaces.clear();
        nat.mappings.clear();
        nat.twice_pool.clear();
        nat.balanced.clear();
        nat.identities.clear();
        nat.excluded.clear();
        nat.vrf_tables.clear();
        nat.settings = Settings::default();
        nat.forwarding = false;
        publish(engine, nat);
        nat.enabled = None;
        Ok(())
    })
}
