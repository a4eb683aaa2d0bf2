//! What the control thread has the owner of the tree do.

use quiver_control::Refusal;
use quiver_core::Engine;
use quiver_shaping::node::{Chunk, SettingsChunk};
use quiver_shaping::scheduler::Scheduler;
use quiver_shaping::settings::Settings;

use crate::node::{NAME, OWNER, Shaper};
use crate::waiting::Waiting;

/// Orders that the owner carries out between two passes.
const ORDERS_PER_CALL: usize = 256;

/// A change of the tree.
pub(crate) enum Order {
    /// Begin with an empty tree.
    Begin(Option<Box<Scheduler<Waiting>>>),
    /// Memory for nodes.
    Grow(Option<Chunk>),
    /// Memory for settings.
    GrowSettings(Option<SettingsChunk>),
    /// The settings of a number.
    Set(u32, Settings),
    /// A node is made: its parent and settings.
    Add(u32, Option<u32>, u32),
    /// It gets others.
    Change(u32, Option<u32>, u32),
    /// Its settings are others.
    Reconsider(u32),
    /// It is deleted.
    Remove(u32),
}

impl Order {
    /// Carry it out; false when the tree refuses.
    fn carry_out(&mut self, shaper: &mut Shaper, now_ns: u64) -> bool {
        if let Order::Begin(scheduler) = self {
            std::mem::swap(&mut shaper.scheduler, scheduler);
            return true;
        }
        let Some(scheduler) = &mut shaper.scheduler else { return false };
        match self {
            Order::Begin(_) => true,
            Order::Grow(chunk) => match chunk.take().map(|chunk| scheduler.grow(chunk)) {
                Some(Err(back)) => {
                    *chunk = Some(back);
                    false
                }
                _ => true,
            },
            Order::GrowSettings(chunk) => {
                match chunk.take().map(|chunk| scheduler.grow_settings(chunk)) {
                    Some(Err(back)) => {
                        *chunk = Some(back);
                        false
                    }
                    _ => true,
                }
            }
            Order::Set(number, settings) => scheduler.set_settings(*number, *settings),
            Order::Add(node, parent, settings) => scheduler.add(*node, *parent, *settings),
            Order::Change(node, parent, settings) => {
                scheduler.change(*node, *parent, *settings, now_ns)
            }
            Order::Reconsider(node) => {
                scheduler.reconsider(*node, now_ns);
                true
            }
            Order::Remove(node) => {
                scheduler.remove(*node, now_ns);
                true
            }
        }
    }
}

fn refusal(error: impl std::fmt::Display) -> Refusal {
    Refusal::new(error.to_string())
}

/// Have the owner carry orders out, a bounded number between two passes.
///
/// # Errors
/// The owner does not answer, or refuses: those before are carried out then.
pub(crate) fn give(engine: &mut Engine, orders: Vec<Order>) -> Result<(), Refusal> {
    let node = engine.node_id(NAME).ok_or_else(|| refusal("shapers are not built in"))?;
    let mut left = orders.into_iter();
    loop {
        let mut some: Vec<Order> = left.by_ref().take(ORDERS_PER_CALL).collect();
        if some.is_empty() {
            return Ok(());
        }
        let done = engine.call(OWNER, move |worker| {
            worker.visit::<Shaper, _>(node, |shaper, cx| {
                // What a change lets go on is served in the next pass.
                cx.tick_at(cx.now_ns);
                some.iter_mut().all(|order| order.carry_out(shaper, cx.now_ns))
            })
        });
        if done.map_err(refusal)? != Some(true) {
            return Err(refusal("the tree of shapers refuses the change")
                .remedy("report it: the configuration was checked before"));
        }
    }
}

/// Take out of `nodes` those that are free again.
pub(crate) fn take_free(engine: &mut Engine, nodes: &mut Vec<u32>) -> Vec<u32> {
    let Some(node) = engine.node_id(NAME) else { return Vec::new() };
    let some: Vec<u32> = nodes.iter().copied().take(u64::BITS as usize).collect();
    let asked = some.clone();
    let free = engine.call(OWNER, move |worker| {
        worker.visit::<Shaper, _>(node, |shaper, _| {
            let scheduler = shaper.scheduler.as_ref();
            asked.iter().enumerate().fold(0_u64, |free, (place, node)| {
                free | u64::from(scheduler.is_none_or(|of| of.is_free(*node))) << place
            })
        })
    });
    let free = free.ok().flatten().unwrap_or(0);
    let mut place = 0;
    let is_free = |_: &u32| {
        place += 1;
        free >> (place - 1) & 1 != 0
    };
    let taken: Vec<u32> = some.into_iter().filter(is_free).collect();
    nodes.retain(|node| !taken.contains(node));
    taken
}

/// Buffers that packets occupy which wait, and how many may.
pub(crate) fn buffers(engine: &mut Engine) -> (usize, usize) {
    let Some(node) = engine.node_id(NAME) else { return (0, 0) };
    let got = engine.call(OWNER, move |worker| {
        worker.visit::<Shaper, _>(node, |shaper, _| {
            shaper.scheduler.as_ref().map(|scheduler| scheduler.buffers())
        })
    });
    got.ok().flatten().flatten().unwrap_or((0, 0))
}
