//! What a node is: a decision about packets, with a name, named edges and named deaths.

use std::any::Any;
use std::cell::RefCell;
use std::sync::Arc;

use crate::block::{Kernel, MakeKernel};
use crate::graph::context::Context;
use crate::graph::directory::Directory;
use crate::graph::drop_reason::DropReason;
use crate::graph::frame::Frame;
use crate::graph::trace::TraceRecord;
use crate::ids::{InterfaceId, NodeId, WorkerId};
use crate::memory::packet::{Packet, PacketFlags};

/// The node where packets die, counted by reason: `error-drop`.
pub const DROP: NodeId = NodeId(0);

/// A step of the graph. Each worker has an instance of its own, so it may keep state.
pub trait Node: Send {
    /// Decide where each packet of the vector goes ([`Frame::route`] and its kin), or take packets
    /// out of it. Whatever stays in the vector goes where its `next` says.
    fn run(&mut self, cx: &mut Context<'_>, frame: &mut Frame);

    /// The node itself, when worker calls may look for it by its type
    /// ([`Worker::visit`](crate::worker::Worker::visit)).
    fn as_any(&mut self) -> Option<&mut dyn Any> {
        None
    }

    /// The time is come that was set by [`Context::tick_at`] or [`Worker::tick_at`]: do what is
    /// due, and say when the next thing is.
    ///
    /// [`Worker::tick_at`]: crate::worker::Worker::tick_at
    fn tick(&mut self, cx: &mut Context<'_>) -> Option<u64> {
        let _ = cx;
        None
    }
    /// The interface whose device it gives packets to.
    fn sends_on(&self) -> Option<InterfaceId> {
        None
    }
}

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// Nothing is wrong.
    Info,
    /// A packet died.
    Error,
}

/// A reason or event as an operator reads it.
#[derive(Clone, Copy, Debug)]
pub struct ReasonText {
    /// Its short name, as in `show errors`.
    pub name: &'static str,
    /// A sentence.
    pub text: &'static str,
    /// How bad it is.
    pub severity: Severity,
}

impl ReasonText {
    /// Why packets die.
    pub const fn error(name: &'static str, text: &'static str) -> ReasonText {
        ReasonText { name, text, severity: Severity::Error }
    }
}

/// A node's enum of reasons; made by [`reasons!`](crate::reasons).
pub trait Reason: Copy {
    /// All, in the order of their numbers.
    const ALL: &'static [ReasonText];
    /// Its number in the node.
    fn number(self) -> u16;
}

/// A node that never drops.
#[derive(Clone, Copy)]
pub enum Never {}

impl Reason for Never {
    const ALL: &'static [ReasonText] = &[];
    fn number(self) -> u16 {
        match self {}
    }
}

/// Declare a node's reasons: variant, short name, sentence. `info` before the name marks an event
/// that is no death. A first variant that holds another enum stands for all reasons of that one,
/// which has `ALL`, `name` and `text`, and whose numbers come first.
///
/// ```text
/// quiver_core::reasons! {
///     /// Why `example-input` drops.
///     pub enum ExampleDrop {
///         /// The frame ends before its header does.
///         Truncated = "truncated", "the frame is shorter than its header";
///         /// A reply was sent.
///         Replied = info "replied", "replies sent";
///     }
/// }
/// ```
#[macro_export]
macro_rules! reasons {
    ($(#[$doc:meta])* $vis:vis enum $name:ident { $($(#[$vdoc:meta])* $variant:ident = $($info:ident)? $short:literal, $text:literal;)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u16)]
        $vis enum $name { $($(#[$vdoc])* $variant,)* }
        impl $crate::graph::node::Reason for $name {
            const ALL: &'static [$crate::graph::node::ReasonText] = &[$($crate::graph::node::ReasonText {
                name: $short,
                text: $text,
                severity: $crate::reasons!(@severity $($info)?),
            },)*];
            #[inline(always)]
            fn number(self) -> u16 { self as u16 }
        }
    };
    ($(#[$doc:meta])* $vis:vis enum $name:ident { $(#[$fdoc:meta])* $first:ident($inner:ident); $($(#[$vdoc:meta])* $variant:ident = $short:literal, $text:literal;)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $vis enum $name { $(#[$fdoc])* $first($inner), $($(#[$vdoc])* $variant,)* }
        impl From<$inner> for $name {
            fn from(inner: $inner) -> $name { $name::$first(inner) }
        }
        impl $crate::graph::node::Reason for $name {
            const ALL: &'static [$crate::graph::node::ReasonText] = {
                use $crate::graph::node::ReasonText;
                const OWN: &[ReasonText] = &[$(ReasonText::error($short, $text),)*];
                const INNER: usize = $inner::ALL.len();
                const ALL: [ReasonText; INNER + OWN.len()] = {
                    let mut all = [ReasonText::error("", ""); INNER + OWN.len()];
                    let mut at = 0;
                    while at < all.len() {
                        all[at] = if at < INNER {
                            ReasonText::error($inner::ALL[at].name(), $inner::ALL[at].text())
                        } else {
                            OWN[at - INNER]
                        };
                        at += 1;
                    }
                    all
                };
                &ALL
            };
            fn number(self) -> u16 {
                #[repr(u16)]
                enum Own { $($variant,)* }
                match self {
                    $name::$first(inner) => inner as u16,
                    $($name::$variant => $inner::ALL.len() as u16 + Own::$variant as u16,)*
                }
            }
        }
    };
    (@severity info) => { $crate::graph::node::Severity::Info };
    (@severity) => { $crate::graph::node::Severity::Error };
}

/// What a node finds when an instance of it is made for a worker.
pub struct Wiring<'a> {
    directory: &'a Directory,
    edges: RefCell<Vec<NodeId>>,
    missing: RefCell<Vec<String>>,
    /// The node's own number.
    pub id: NodeId,
    /// The worker that the instance is for.
    pub worker: WorkerId,
}

impl<'a> Wiring<'a> {
    pub(crate) fn new(directory: &'a Directory, id: NodeId, worker: WorkerId) -> Wiring<'a> {
        Wiring { directory, edges: RefCell::default(), missing: RefCell::default(), id, worker }
    }

    /// The number of the node called `name`, and an edge to it in `show graph`. A name that does
    /// not exist is an error at start-up.
    pub fn node(&self, name: &str) -> NodeId {
        self.node_if_built(name).unwrap_or_else(|| {
            self.missing.borrow_mut().push(name.to_owned());
            DROP
        })
    }

    /// As [`node`](Self::node), for a neighbour that may not be built in.
    pub fn node_if_built(&self, name: &str) -> Option<NodeId> {
        let id = *self.directory.ids.get(name)?;
        self.edge(id);
        Some(id)
    }

    /// The number of the node called `name`, without an edge to it: for a node that only has to
    /// know it.
    pub fn number(&self, name: &str) -> Option<NodeId> {
        self.directory.ids.get(name).copied()
    }

    fn edge(&self, id: NodeId) {
        let mut edges = self.edges.borrow_mut();
        if !edges.contains(&id) {
            edges.push(id);
        }
    }

    /// The numbers of `space` that nodes have claimed
    /// ([`GraphBuilder::claim`](crate::graph::builder::GraphBuilder::claim)), and an edge to each
    /// of them.
    pub fn claims(&self, space: &str) -> Vec<(u32, NodeId)> {
        let claims: Vec<_> = self.directory.claims(space).collect();
        claims.iter().for_each(|(_, id)| self.edge(*id));
        claims
    }

    /// What a feature shares ([`GraphBuilder::share`](crate::graph::builder::GraphBuilder::share)).
    ///
    /// # Panics
    /// At start-up, when nobody shares such a thing: the feature that keeps it is not built in.
    pub fn shared<T: Send + Sync + 'static>(&self) -> Arc<T> {
        let shared = self.directory.shared();
        shared.unwrap_or_else(|| {
            panic!("no feature that is built in shares {}", std::any::type_name::<T>())
        })
    }

    pub(crate) fn finish(self) -> (Vec<NodeId>, Vec<String>) {
        (self.edges.into_inner(), self.missing.into_inner())
    }
}

/// Where a node stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum NodeKind {
    /// Devices give packets to the graph in its name; it has no vector of its own.
    Input,
    /// Between.
    Internal,
    /// Packets end here.
    Sink,
}

/// Names for numbers, for traces.
pub trait Names {
    /// An interface's name.
    fn interface(&self, id: InterfaceId) -> String;
    /// A node's name.
    fn node(&self, id: NodeId) -> String;
    /// The sentence of a drop reason.
    fn reason(&self, reason: DropReason) -> String;
}

/// What a node does about packets that leave work to the transmitting device: a checksum, or the
/// cutting into segments ([`Offload`](crate::memory::buffer::Offload)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Offloads {
    /// It never sees them: the work is done before.
    #[default]
    Nothing,
    /// It takes them as they are, up to so many bytes; `nested` ones stand for packets in packets.
    Takes { length_max: u32, nested: bool },
    /// It does the work. Where packets go then stands in the vector.
    Finishes,
}

impl Offloads {
    /// It takes them of any length.
    pub(crate) const TAKES_ALL: Offloads = Offloads::Takes { length_max: u32::MAX, nested: true };
    /// A device takes them, but for those that stand for packets in packets: what it is told of
    /// segments knows no tunnels (VIRTIO 1.2 §5.1.6).
    pub(crate) const DEVICE_TAKES: Offloads =
        Offloads::Takes { length_max: u32::MAX, nested: false };

    /// Does it take all packets of a vector, some of which leave work to the device?
    #[cold]
    pub(crate) fn take_all(self, packets: &[Packet]) -> bool {
        let Offloads::Takes { length_max, nested } = self else { return false };
        self == Offloads::TAKES_ALL
            || packets.iter().filter(|packet| packet.has(PacketFlags::OFFLOAD)).all(|packet| {
                packet.length() <= length_max as usize
                    && (nested || !packet.is_nested_super_frame())
            })
    }
}

/// Makes a worker's instance of a node.
pub type MakeNode = Arc<dyn Fn(&Wiring<'_>) -> Box<dyn Node> + Send + Sync>;
/// Says in words what a node saw and decided.
pub type Describe = Arc<dyn Fn(&TraceRecord, &dyn Names) -> String + Send + Sync>;

/// The declaration of a node.
#[derive(Clone)]
pub struct NodeSpec {
    /// Its name, as in VPP where the meaning is the same.
    pub name: String,
    /// A line on what it does, for `show node`.
    pub help: &'static str,
    /// Where it stands.
    pub kind: NodeKind,
    /// Why packets die in it, and what it counts.
    pub reasons: &'static [ReasonText],
    /// Is it a slow path?
    pub(crate) is_slow_path: bool,
    /// What it does about packets that leave work to the transmitting device.
    pub(crate) offloads: Offloads,
    /// The next node that is a slow path for what comes from here.
    pub(crate) detour: Option<&'static str>,
    pub(crate) make: Option<MakeNode>,
    /// Makes a kernel instead.
    pub(crate) make_kernel: Option<MakeKernel>,
    pub(crate) describe: Option<Describe>,
    /// A [`StageMaker`](crate::graph::stage::StageMaker), when the node is a stage that can be part
    /// of a pair.
    pub(crate) maker: Option<Arc<dyn std::any::Any + Send + Sync>>,
}

impl NodeSpec {
    /// A node between others.
    pub fn new(
        name: impl Into<String>,
        help: &'static str,
        make: impl Fn(&Wiring<'_>) -> Box<dyn Node> + Send + Sync + 'static,
    ) -> NodeSpec {
        let make: MakeNode = Arc::new(make);
        NodeSpec {
            name: name.into(),
            help,
            kind: NodeKind::Internal,
            reasons: &[],
            is_slow_path: false,
            offloads: Offloads::default(),
            detour: None,
            make: Some(make),
            make_kernel: None,
            describe: None,
            maker: None,
        }
    }

    /// A node whose packets the block driver takes through a kernel.
    pub(crate) fn kernel(
        name: impl Into<String>,
        help: &'static str,
        make: impl Fn(&Wiring<'_>) -> Box<dyn Kernel> + Send + Sync + 'static,
    ) -> NodeSpec {
        let spec = NodeSpec::input(name, help);
        NodeSpec { kind: NodeKind::Internal, make_kernel: Some(Arc::new(make)), ..spec }
    }

    /// The name under which devices of one kind give packets to the graph.
    pub fn input(name: impl Into<String>, help: &'static str) -> NodeSpec {
        NodeSpec {
            name: name.into(),
            help,
            kind: NodeKind::Input,
            reasons: &[],
            is_slow_path: false,
            offloads: Offloads::default(),
            detour: None,
            make: None,
            make_kernel: None,
            describe: None,
            maker: None,
        }
    }

    /// Packets end here.
    pub fn sink(mut self) -> NodeSpec {
        self.kind = NodeKind::Sink;
        self
    }

    /// It is a slow path: packets come to it while others of their flow take a shorter path, and
    /// what it sends on goes out by the same devices. Vectors in which some packets go to it are
    /// put back into order before they are sent.
    pub fn slow_path(mut self) -> NodeSpec {
        self.is_slow_path = true;
        self
    }

    /// To the node of this name it sends what it cannot finish itself, beside others of the flow
    /// that it finishes: there they are on a slow path, as in [`slow_path`](Self::slow_path).
    pub fn detour(mut self, next: &'static str) -> NodeSpec {
        self.detour = Some(next);
        self
    }

    /// It takes packets that leave work to the transmitting device, super-frames among them: their
    /// length says nothing of the packets on the wire, and their checksum is no checksum yet.
    pub fn takes_offloads(mut self) -> NodeSpec {
        self.offloads = Offloads::TAKES_ALL;
        self
    }

    /// As [`takes_offloads`](Self::takes_offloads), for a node that puts headers in front with the
    /// length of the packet behind them: it takes super-frames of `length_max` bytes at most.
    pub fn takes_offloads_up_to(mut self, length_max: u32) -> NodeSpec {
        self.offloads = Offloads::Takes { length_max, nested: true };
        self
    }

    /// It does the work that packets leave to the transmitting device, for the nodes that do not
    /// take such packets: where a packet would have gone stands in the vector
    /// ([`Frame::next_of`]). A graph has one such node, or none.
    pub fn finishes_offloads(mut self) -> NodeSpec {
        self.offloads = Offloads::Finishes;
        self
    }

    /// Its reasons.
    pub fn reasons<R: Reason>(mut self) -> NodeSpec {
        assert!(
            R::ALL.len() <= crate::graph::counters::REASONS_PER_NODE_MAX,
            "{}: too many reasons",
            self.name
        );
        self.reasons = R::ALL;
        self
    }

    /// Its words in a trace.
    pub fn describe(
        mut self,
        words: impl Fn(&TraceRecord, &dyn Names) -> String + Send + Sync + 'static,
    ) -> NodeSpec {
        self.describe = Some(Arc::new(words));
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Header {
        Short,
        Long,
    }

    impl Header {
        const ALL: &'static [Header] = &[Header::Short, Header::Long];

        const fn name(self) -> &'static str {
            match self {
                Header::Short => "short",
                Header::Long => "long",
            }
        }

        const fn text(self) -> &'static str {
            match self {
                Header::Short => "the header is too short",
                Header::Long => "the header is too long",
            }
        }
    }

    crate::reasons! {
        /// Why a node drops.
        enum Drop {
            /// The header is wrong.
            Header(Header);
            /// The packet is.
            Old = "old", "the packet is too old";
            /// It came in by the wrong interface.
            Stray = "stray", "the packet came from elsewhere";
        }
    }

    #[test]
    fn a_variant_that_holds_reasons_stands_for_all_of_them_before_the_others() {
        let reasons = [Drop::from(Header::Short), Header::Long.into(), Drop::Old, Drop::Stray];
        let named: Vec<_> =
            reasons.iter().map(|reason| Drop::ALL[usize::from(reason.number())].name).collect();
        assert_eq!(named, ["short", "long", "old", "stray"]);
        assert_eq!(Drop::ALL.len(), reasons.len());
    }
}
