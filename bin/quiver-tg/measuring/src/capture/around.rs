//! Inserts the capture nodes of a port into its receive and transmit paths.

use quiver_core::clock::Clock;
use quiver_core::{Engine, NodeId, NodeSpec};

use super::node::{CaptureNode, Tap, tap};
use super::writer::Captures;
use quiver_tg_traffic::profile::capture::{CaptureSpec, CapturedDirection};

impl Captures {
    /// Captures of port `number`: what comes goes to `input` through them, what leaves to
    /// `output`. Returns what to use in their place.
    ///
    /// # Errors
    /// When a file cannot be created, or the engine refuses a node.
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
            for (direction, taps) in
                [(CapturedDirection::Received, &mut received), (CapturedDirection::Sent, &mut sent)]
            {
                if spec.direction.has(direction) {
                    let (tap, handle) = tap(spec);
                    taps.push(tap);
                    handles.push((direction, handle));
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
