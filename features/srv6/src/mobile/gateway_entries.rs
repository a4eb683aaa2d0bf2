//! The rows of gateways into SRv6, on the control thread.

use std::sync::Arc;

use quiver_control::Refusal;
use quiver_core::Engine;
use quiver_core::graph::builder::GraphBuilder;
use quiver_encap::entries::ENCAP_ENTRIES_MAX;
use quiver_encap::{EncapEntries, WorkerEncapEntries};
use quiver_tables::memory::MemoryError;

use super::encap_template::EncapTemplate;

/// The two rows of a gateway.
#[derive(Clone, Copy, Debug)]
pub(super) struct GatewayEntries {
    /// Of users' packets.
    pub packets: u32,
    /// Of other messages.
    pub messages: u32,
}

/// All of them.
pub(super) struct GatewayTable(EncapEntries);

impl GatewayTable {
    pub fn new(graph: &GraphBuilder) -> Result<GatewayTable, MemoryError> {
        EncapEntries::new("mobile gateways", graph.workers(), graph.epochs()).map(GatewayTable)
    }

    /// What workers read.
    pub fn workers(&self) -> Arc<[Arc<WorkerEncapEntries>]> {
        self.0.workers().into()
    }

    /// Packets and bytes that a gateway has sent on.
    pub fn counted(&self, rows: GatewayEntries) -> [u64; 2] {
        let ([a, b], [c, d]) = (self.0.sums(rows.packets), self.0.sums(rows.messages));
        [a.wrapping_add(c), b.wrapping_add(d)]
    }
}

/// What they weigh.
pub(super) fn weigh(engine: &Engine) -> Vec<(&'static str, u64)> {
    let bytes = engine.get::<GatewayTable>().map_or(0, |rows| rows.0.resident_bytes() as u64);
    vec![("mobile gateways", bytes)]
}

/// Write the rows of a recipe, whose segments are looked up in a table by its small number.
pub(super) fn add(
    engine: &mut Engine,
    recipe: &EncapTemplate,
    table: u32,
) -> Result<GatewayEntries, Refusal> {
    engine.with(|_, rows: &mut GatewayTable| {
        let full = || {
            let what = format!("there are {} mobile gateways already", ENCAP_ENTRIES_MAX / 2);
            Refusal::new(what).remedy("delete some")
        };
        let messages =
            rows.0.add(&recipe.header(true), recipe.words(true, table, 0)).ok_or_else(full)?;
        let Some(packets) = rows.0.add(&recipe.header(false), recipe.words(false, table, messages))
        else {
            rows.0.retire(messages);
            return Err(full());
        };
        Ok(GatewayEntries { packets, messages })
    })
}

/// Take them out of use.
pub(super) fn retire(engine: &mut Engine, held: GatewayEntries) {
    engine.with(|_, rows: &mut GatewayTable| {
        rows.0.retire(held.packets);
        rows.0.retire(held.messages);
    });
}
