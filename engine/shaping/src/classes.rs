//! Nodes by how long what waits in them takes at their rate, in powers of two: whom to drop from
//! when there is too much of all.

use crate::NONE;
use crate::node::{NO_CLASS, Nodes};
use crate::settings::Settings;

const CLASSES: usize = 64;

/// Rings of nodes, one for each power of two nanoseconds.
#[derive(Debug)]
pub(crate) struct Classes {
    first: [u32; CLASSES],
    /// Which rings have nodes.
    used: u64,
}

/// The class of so many bytes. Without a rate nothing waits for a rate.
fn class_of(of: &Settings, bytes: u32) -> u8 {
    if bytes == 0 {
        return NO_CLASS;
    }
    (63 - (of.time_of(bytes.into()) | 1).leading_zeros()) as u8
}

impl Classes {
    pub fn new() -> Classes {
        Classes { first: [NONE; CLASSES], used: 0 }
    }

    /// More or less waits in a node than before.
    #[inline]
    pub fn update(&mut self, nodes: &mut Nodes, of: &Settings, node: u32) {
        let class = class_of(of, nodes.get(node).queue.bytes);
        let before = nodes.get(node).class;
        if class != before {
            self.unlink(nodes, node, before);
            self.link(nodes, node, class);
            nodes.at(node).class = class;
        }
    }

    #[inline]
    fn link(&mut self, nodes: &mut Nodes, node: u32, class: u8) {
        if class == NO_CLASS {
            return;
        }
        let first = std::mem::replace(&mut self.first[usize::from(class)], node);
        (nodes.at(node).class_previous, nodes.at(node).class_next) = (NONE, first);
        if first != NONE {
            nodes.at(first).class_previous = node;
        }
        self.used |= 1 << class;
    }

    #[inline]
    fn unlink(&mut self, nodes: &mut Nodes, node: u32, class: u8) {
        if class == NO_CLASS {
            return;
        }
        let (previous, next) = (nodes.get(node).class_previous, nodes.get(node).class_next);
        if next != NONE {
            nodes.at(next).class_previous = previous;
        }
        if previous != NONE {
            nodes.at(previous).class_next = next;
            return;
        }
        self.first[usize::from(class)] = next;
        if next == NONE {
            self.used &= !(1 << class);
        }
    }

    /// A node that is, within a factor of two, furthest over its share.
    pub fn furthest(&self) -> Option<u32> {
        (self.used != 0).then(|| self.first[63 - self.used.leading_zeros() as usize])
    }
}
