//! Taps for features: made by their wish, and no part of the configuration's `create tap`.

use quiver_core::{Engine, InterfaceId};
use quiver_linux::{AttachTap, TapMaker, TapWish};

use crate::commands::free_id;
use crate::device::{MadeTap, TapConfig, Taps, attach, delete_tap};

/// What features call.
pub(crate) const CALLS: TapMaker = TapMaker { make, delete, id };

fn make(wish: TapWish) -> Result<AttachTap, String> {
    let TapWish { id, kind, host_name, host_namespace, host_mac, mtu_bytes, owner } = wish;
    let config = TapConfig {
        kind,
        host_name: Some(host_name),
        host_namespace,
        host_mac,
        host_mtu_bytes: Some(mtu_bytes),
        owner: Some(owner),
        ..TapConfig::default()
    };
    let mut made = MadeTap::new(config).map_err(|error| error.to_string())?;
    Ok(Box::new(move |engine| {
        made.config.id = id.unwrap_or_else(|| free_id(engine));
        attach(engine, made).map_err(|error| error.to_string())
    }))
}

fn delete(engine: &mut Engine, tap: InterfaceId) -> Result<(), String> {
    delete_tap(engine, tap).map_err(|error| error.to_string())
}

fn id(engine: &Engine, tap: InterfaceId) -> Option<u32> {
    engine.get::<Taps>()?.0.get(&tap).map(|tap| tap.config.id)
}
