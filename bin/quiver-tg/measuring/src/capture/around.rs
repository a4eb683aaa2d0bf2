//! Puts the nodes of a port's captures on its ways.

use quiver_core::clock::Clock;
use quiver_core::{Engine, NodeId, NodeSpec};

use super::book::Captures;
use super::node::{CaptureNode, Tap, tap};
use quiver_tg_traffic::profile::capture::{CaptureSpec, Way};

impl Captures {
    /// Captures of port `number`: what comes goes to `input` by way of them, what leaves to
    /// `output`. Returns what to use in their place.
    pub fn around<'a>(
        &self,
        engine: &mut Engine,
        clock: &Clock,
        number: usize,
        specs: impl Iterator<Item = &'a CaptureSpec>,
        (input, output): (NodeId, NodeId),
    ) -> anyhow::Result<(NodeId, NodeId)> {
        let (mut received, mut sent): (Vec<Tap>, Vec<Tap>) = Default::default();
        for spec in specs.filter(|spec| spec.port == number) {
            let mut handles = Vec::new();
            for (way, taps) in [(Way::Received, &mut received), (Way::Sent, &mut sent)] {
                if spec.direction.has(way) {
                    let (tap, handle) = tap(spec);
                    taps.push(tap);
                    handles.push((way, handle));
                }
            }
            self.add(engine, spec, handles)?;
        }
        let input = node(engine, clock, format!("tg-capture-rx-{number}"), received, input)?;
        let output = node(engine, clock, format!("tg-capture-tx-{number}"), sent, output)?;
        Ok((input, output))
    }
}

/// A node with these taps before `next`; `next` itself if there are none.
fn node(
    engine: &mut Engine,
    clock: &Clock,
    name: String,
    taps: Vec<Tap>,
    next: NodeId,
) -> anyhow::Result<NodeId> {
    if taps.is_empty() {
        return Ok(next);
    }
    let spec = NodeSpec::input(name, "Copies the frames that captures want");
    Ok(engine.add_node(spec, vec![Box::new(CaptureNode::new(clock.clone(), taps, next))])?)
}
