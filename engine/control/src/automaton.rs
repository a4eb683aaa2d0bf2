//! A command's tree compiled into states and edges, so that matching never goes back.
//!
//! Sets (any order) keep what was given in a mask: an edge says which bits must be clear, which
//! must be set, which it clears and sets. Everything that takes no word (leaving a group, skipping
//! an option) is folded into the edges when the command is registered.

use std::sync::Arc;

use crate::syntax::{Choice, Node};
use crate::types::ValueType;

/// Bit set of the options given so far.
pub(crate) type Mask = u128;

/// What an edge takes.
#[derive(Clone, Debug)]
pub(crate) enum Take {
    /// A word; recorded under a name when it is a flag or a choice.
    Literal { word: &'static str, record: Option<u16> },
    /// A value.
    Value { name: u16, value_type: Arc<ValueType> },
}

/// Opening and closing repetitions of groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GroupStep {
    /// A repetition of the group of this name begins.
    Open(u16),
    /// It ends.
    Close,
}

/// What happens between two words.
#[derive(Clone, Debug, Default)]
pub(crate) struct Passage {
    forbid: Mask,
    require: Mask,
    reset: Mask,
    set: Mask,
    pub(crate) groups: Vec<GroupStep>,
}

impl Passage {
    #[inline]
    pub(crate) fn is_open(&self, mask: Mask) -> bool {
        mask & self.forbid == 0 && mask & self.require == self.require
    }

    /// Is it shut only because its option was given already?
    pub(crate) fn is_used_up(&self, mask: Mask) -> bool {
        mask & self.forbid != 0
    }

    #[inline]
    pub(crate) fn cross(&self, mask: Mask) -> Mask {
        mask & !self.reset | self.set
    }
}

/// From one state to another by one word.
#[derive(Clone, Debug)]
pub(crate) struct Edge {
    pub(crate) take: Take,
    pub(crate) passage: Passage,
    pub(crate) target: u32,
}

/// Where the matcher can stand.
#[derive(Clone, Debug, Default)]
pub(crate) struct State {
    pub(crate) edges: Vec<Edge>,
    pub(crate) accept: Vec<Passage>,
}

/// A compiled command: state 0 is its beginning.
#[derive(Clone, Debug)]
pub(crate) struct Automaton {
    pub(crate) states: Vec<State>,
    pub(crate) names: Vec<&'static str>,
}

#[derive(Clone, Copy, Debug)]
enum Free {
    Jump,
    /// Take an option that may be given once.
    Use {
        bit: Mask,
    },
    /// Take an option that may be given again.
    Note {
        bit: Mask,
    },
    Complete {
        required: Mask,
    },
    Reset {
        bits: Mask,
    },
    Group(GroupStep),
}

#[derive(Debug, Default)]
struct Point {
    free: Vec<(Free, usize)>,
    take: Option<(Take, usize)>,
}

struct Builder {
    points: Vec<Point>,
    names: Vec<&'static str>,
    bits: u32,
    /// For messages about our own faults.
    syntax: String,
}

/// Compile a tree.
pub(crate) fn compile(root: &Node) -> Automaton {
    let mut builder = Builder {
        points: vec![Point::default()],
        names: Vec::new(),
        bits: 0,
        syntax: root.usage(),
    };
    let end = builder.node(root, 0);
    let mut automaton = Automaton { states: Vec::new(), names: builder.names.clone() };
    let mut state_of = vec![u32::MAX; builder.points.len()];
    let mut waiting = vec![0];
    state_of[0] = 0;
    automaton.states.push(State::default());
    while let Some(point) = waiting.pop() {
        let mut state = State::default();
        let mut on_path = Vec::new();
        builder.flatten(point, end, Passage::default(), &mut on_path, &mut state);
        for edge in &mut state.edges {
            let target = edge.target as usize;
            if state_of[target] == u32::MAX {
                state_of[target] = automaton.states.len() as u32;
                automaton.states.push(State::default());
                waiting.push(target);
            }
            edge.target = state_of[target];
        }
        builder.check_distinct(&state);
        automaton.states[state_of[point] as usize] = state;
    }
    automaton
}

impl Builder {
    fn point(&mut self) -> usize {
        self.points.push(Point::default());
        self.points.len() - 1
    }

    fn free(&mut self, from: usize, step: Free, to: usize) {
        self.points[from].free.push((step, to));
    }

    fn taking(&mut self, from: usize, take: Take) -> usize {
        let middle = self.point();
        let to = self.point();
        self.free(from, Free::Jump, middle);
        self.points[middle].take = Some((take, to));
        to
    }

    fn name(&mut self, name: &'static str) -> u16 {
        let index = self.names.iter().position(|known| *known == name).unwrap_or_else(|| {
            self.names.push(name);
            self.names.len() - 1
        });
        index as u16
    }

    fn bit(&mut self) -> Mask {
        assert!(self.bits < Mask::BITS, "more than {} options, in: {}", Mask::BITS, self.syntax);
        self.bits += 1;
        1 << (self.bits - 1)
    }

    /// Add `node` after `from`; returns where it ends.
    fn node(&mut self, node: &Node, from: usize) -> usize {
        match node {
            Node::Literal { word, flag } => {
                let record = flag.then(|| self.name(word));
                self.taking(from, Take::Literal { word, record })
            }
            Node::Value { name, choices } => {
                let end = self.point();
                for choice in choices {
                    let name = self.name(name);
                    let take = match choice {
                        Choice::Word(word) => Take::Literal { word, record: Some(name) },
                        Choice::Type(t) => Take::Value { name, value_type: Arc::new(t.clone()) },
                    };
                    let to = self.taking(from, take);
                    self.free(to, Free::Jump, end);
                }
                end
            }
            Node::Seq(items) => items.iter().fold(from, |at, item| self.node(item, at)),
            Node::Opt(inner) => {
                let end = self.node(inner, from);
                self.free(from, Free::Jump, end);
                end
            }
            Node::Alt(items) => {
                let end = self.point();
                for item in items {
                    let to = self.node(item, from);
                    self.free(to, Free::Jump, end);
                }
                end
            }
            Node::Set(items) => self.set(items, from),
            Node::Repeat { name, inner } => self.repeat(name, inner, from),
        }
    }

    fn repeat(&mut self, name: &'static str, inner: &Node, from: usize) -> usize {
        assert!(!inner.is_nullable(), "what is repeated may be empty, in: {}", self.syntax);
        let hub = self.point();
        self.free(from, Free::Jump, hub);
        let end = if matches!(inner, Node::Value { .. }) {
            self.node(inner, hub)
        } else {
            let name = self.name(name);
            let start = self.point();
            self.free(hub, Free::Group(GroupStep::Open(name)), start);
            let inside = self.node(inner, start);
            let end = self.point();
            self.free(inside, Free::Group(GroupStep::Close), end);
            end
        };
        self.free(end, Free::Jump, hub);
        end
    }

    fn set(&mut self, items: &[Node], from: usize) -> usize {
        let hub = self.point();
        let end = self.point();
        let (mut all, mut required) = (0, 0);
        for item in items {
            let (inner, optional) = match item {
                Node::Opt(inner) => (&**inner, true),
                other => (other, false),
            };
            assert!(!inner.is_nullable(), "a member of a set may be empty, in: {}", self.syntax);
            let bit = self.bit();
            all |= bit;
            required |= if optional { 0 } else { bit };
            let start = self.point();
            let step = if matches!(inner, Node::Repeat { .. }) {
                Free::Note { bit }
            } else {
                Free::Use { bit }
            };
            self.free(hub, step, start);
            let done = self.node(inner, start);
            self.free(done, Free::Jump, hub);
        }
        self.free(from, Free::Reset { bits: all }, hub);
        self.free(hub, Free::Complete { required }, end);
        end
    }

    /// Collect what can be done from `point` by one word.
    fn flatten(
        &self,
        point: usize,
        end: usize,
        passage: Passage,
        on_path: &mut Vec<usize>,
        state: &mut State,
    ) {
        if on_path.contains(&point) {
            return;
        }
        on_path.push(point);
        if point == end {
            state.accept.push(passage.clone());
        }
        if let Some((take, to)) = &self.points[point].take {
            state.edges.push(Edge {
                take: take.clone(),
                passage: passage.clone(),
                target: *to as u32,
            });
        }
        for (step, to) in &self.points[point].free {
            if let Some(next) = follow(&passage, *step) {
                self.flatten(*to, end, next, on_path, state);
            }
        }
        on_path.pop();
    }

    /// Two ways for the same word would make one of them unreachable: our own fault.
    fn check_distinct(&self, state: &State) {
        for (index, edge) in state.edges.iter().enumerate() {
            let Take::Literal { word, .. } = edge.take else { continue };
            let again = state.edges[..index].iter().any(|other| {
                let same = matches!(other.take, Take::Literal { word: w, .. } if w == word);
                same && (other.target != edge.target)
            });
            assert!(!again, "'{word}' can mean two things at the same place, in: {}", self.syntax);
        }
    }
}

/// The passage after one more step, or `None` when no mask can make it.
fn follow(passage: &Passage, step: Free) -> Option<Passage> {
    let mut next = passage.clone();
    match step {
        Free::Jump => {}
        Free::Group(step) => next.groups.push(step),
        Free::Reset { bits } => {
            next.reset |= bits;
            next.set &= !bits;
        }
        Free::Use { bit } => {
            if passage.set & bit != 0 {
                return None;
            }
            if passage.reset & bit == 0 {
                next.forbid |= bit;
            }
            next.set |= bit;
        }
        Free::Note { bit } => next.set |= bit,
        Free::Complete { required } => {
            let open = required & !passage.set;
            if open & passage.reset != 0 {
                return None;
            }
            next.require |= open;
        }
    }
    Some(next)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syntax;
    use crate::types::Types;

    fn automaton(syntax: &'static str) -> Automaton {
        compile(&syntax::parse(syntax, &Types::default()))
    }

    #[test]
    fn a_set_offers_each_member_once_and_ends_when_the_required_ones_are_there() {
        let automaton = automaton("{id <:u16> [size <:u16>]}");
        let start = &automaton.states[0];
        assert_eq!(start.edges.len(), 2);
        assert!(start.accept.is_empty(), "id is required");
        let after_id = &automaton.states
            [automaton.states[start.edges[0].target as usize].edges[0].target as usize];
        let mask = start.edges[0].passage.cross(0);
        assert_eq!(after_id.edges.iter().filter(|e| e.passage.is_open(mask)).count(), 1);
        assert!(after_id.accept.iter().any(|p| p.is_open(mask)));
    }

    #[test]
    #[should_panic(expected = "two things at the same place")]
    fn a_declaration_in_which_a_word_means_two_things_panics() {
        automaton("[a <x:u8>] a <y:u16>");
    }
}
