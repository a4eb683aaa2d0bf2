//! Numbers of nodes, settings and subscribers, and the memory that they need.

use std::sync::Arc;

use quiver_control::Refusal;
use quiver_core::Engine;
use quiver_shaping::node::{CHUNK, Chunk, NODES_MAX, SettingsChunk};
use quiver_shaping::scheduler::Scheduler;
use quiver_shaping::stats::{Counted, Stats};

use crate::orders::{self, Order};
use crate::tables::SUBSCRIBERS_MAX;

/// Packets that wait at most, however many buffers there are.
const BUFFERS_MAX: usize = 65_536;
/// Of the buffers, the part that may wait.
const PART_OF_POOL: usize = 2;
/// Settings of a shaper: its own, and those of its packets without a subscriber.
pub(crate) const SETTINGS_EACH: u32 = 2;

/// Numbers that are taken and given back.
#[derive(Debug, Default)]
struct Free {
    back: Vec<u32>,
    fresh: u32,
}

impl Free {
    fn take(&mut self, max: usize, what: &str) -> Result<u32, Refusal> {
        if let Some(number) = self.back.pop() {
            return Ok(number);
        }
        if self.fresh as usize >= max {
            return Err(Refusal::new(format!("there are {max} {what} already"))
                .remedy("delete some before"));
        }
        self.fresh += 1;
        Ok(self.fresh - 1)
    }
}

/// All numbers.
#[derive(Debug, Default)]
pub(crate) struct Numbers {
    nodes: Free,
    /// Nodes that have been deleted, in which packets may still wait.
    leaving: Vec<u32>,
    settings: Free,
    subscribers: Free,
    settings_chunks: usize,
    stats: Vec<Arc<[Stats; CHUNK]>>,
    has_begun: bool,
}

impl Numbers {
    /// A number for a node; `orders` gets what the owner needs for it.
    pub fn node(&mut self, engine: &mut Engine, orders: &mut Vec<Order>) -> Result<u32, Refusal> {
        self.begin(engine, orders);
        if self.nodes.back.is_empty() && !self.leaving.is_empty() {
            self.nodes.back = orders::take_free(engine, &mut self.leaving);
        }
        let number = self.nodes.take(NODES_MAX, "nodes of shapers and subscribers")?;
        if number as usize >= self.stats.len() * CHUNK {
            let (chunk, stats) = Chunk::new();
            self.stats.push(stats);
            orders.push(Order::Grow(Some(chunk)));
        }
        Ok(number)
    }

    fn begin(&mut self, engine: &Engine, orders: &mut Vec<Order>) {
        if !self.has_begun {
            self.has_begun = true;
            let buffers = (engine.pool().total() / PART_OF_POOL).min(BUFFERS_MAX);
            orders.push(Order::Begin(Some(Box::new(Scheduler::new(buffers)))));
        }
    }

    /// The first of the numbers of a shaper's settings.
    pub fn settings(&mut self, orders: &mut Vec<Order>) -> Result<u32, Refusal> {
        let shapers_max = NODES_MAX / SETTINGS_EACH as usize;
        let number = self.settings.take(shapers_max, "shapers")? * SETTINGS_EACH;
        if number as usize >= self.settings_chunks * CHUNK {
            self.settings_chunks += 1;
            orders.push(Order::GrowSettings(Some(SettingsChunk::default())));
        }
        Ok(number)
    }

    pub fn subscriber(&mut self) -> Result<u32, Refusal> {
        self.subscribers.take(SUBSCRIBERS_MAX, "subscribers")
    }

    /// A node has been deleted.
    pub fn give_node(&mut self, node: u32) {
        self.leaving.push(node);
    }

    pub fn give_settings(&mut self, settings: u32) {
        self.settings.back.push(settings / SETTINGS_EACH);
    }

    pub fn give_subscriber(&mut self, number: u32) {
        self.subscribers.back.push(number);
    }

    /// What a node has counted.
    pub fn counted(&self, node: u32) -> Counted {
        let chunk = self.stats.get(node as usize / CHUNK);
        chunk.map_or_else(Counted::default, |chunk| chunk[node as usize % CHUNK].get())
    }
}
