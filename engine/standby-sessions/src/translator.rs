//! A translator whose sessions two routers tell each other, and what its owner does for that.

use std::ops::Range;

use quiver_control::Refusal;
use quiver_core::graph::node::Node;
use quiver_core::{Context, Engine, NodeId, WorkerId};

use crate::bulk::BulkCursor;
use crate::change::Change;
use crate::feed::Feed;
use crate::outcome::Outcome;
use crate::texts::Texts;
use quiver_standby::wire::Greeting;

/// A translator.
pub trait Translator: Sized + 'static {
    /// The node that makes sessions; the owner's instance has them.
    type Node: Keeper + Node + 'static;
    /// The words of its commands.
    const TEXTS: Texts;
    /// The number of its records among those of other translators.
    const CHANNEL: u8;
    /// The worker that owns the sessions.
    const OWNER: WorkerId;

    /// The node.
    ///
    /// # Errors
    /// It is not built in.
    fn node(engine: &Engine) -> Result<NodeId, Refusal>;

    /// Sessions at most.
    ///
    /// # Errors
    /// The translator is not enabled.
    fn sessions_max(engine: &Engine) -> Result<usize, Refusal>;

    /// How often its configuration was changed.
    fn version(engine: &Engine) -> u64;

    /// The digest of what both routers must have configured alike.
    fn greeting(engine: &Engine) -> Greeting;

    /// Sessions have smaller numbers than this.
    fn places(engine: &Engine) -> usize;

    /// Changes that one worker call does.
    fn changes_per_call(engine: &Engine) -> usize;
}

/// The node of a translator: what the control thread has the owner do, in worker calls that each
/// look at few objects.
pub trait Keeper {
    /// Tell another router of what is made and ended, or none any more. The feed before.
    fn set_feed(&mut self, feed: Option<Box<Feed>>) -> Option<Box<Feed>>;

    /// Do what the peer tells; its sessions get this mark.
    fn apply(&mut self, cx: &mut Context<'_>, changes: &[Change], mark: u32, outcome: &Outcome);

    /// End sessions with these marks, which the peer has not named among all; the place to go on
    /// at, while there is one.
    fn sweep(
        &mut self,
        cx: &mut Context<'_>,
        first: u32,
        marks: Range<u32>,
        outcome: &Outcome,
    ) -> Option<u32>;

    /// Tell the peer a part of all that is there, but for what it has told itself: sessions with
    /// marks from `own_marks` on.
    fn bulk(&mut self, cx: &mut Context<'_>, cursor: &BulkCursor, own_marks: u32);
}
