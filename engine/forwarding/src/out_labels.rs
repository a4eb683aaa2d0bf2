//! Label stacks that paths put in front of packets (RFC 3032 §2.1), and what their TTL and traffic
//! class say (RFC 3443, RFC 3270).

use std::fmt;

use quiver_wire::mpls::{LABEL_MAX, special};

/// Labels that one path puts on a packet at most, those of the routes behind its next hop included.
pub const OUT_LABELS_MAX: usize = 12;
/// The label that stands for none: the router before the last one takes the label off (RFC 3032
/// §2.1).
pub const IMPLICIT_NULL: u32 = special::IMPLICIT_NULL;
/// TTL of labels that tell nothing of the packet behind them.
pub const PIPE_TTL: u8 = 255;

/// What TTL and traffic class of new labels say (RFC 3443 §2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LabelMode {
    /// Nothing of the packet behind them: what the path says.
    #[default]
    Pipe,
    /// The same as the header behind them.
    Uniform,
}

/// A label stack as a path says it, the label that is sent first in front.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OutLabels {
    count: u8,
    mode: LabelMode,
    /// Label, traffic class and TTL as they stand in a label stack entry, without the bottom bit.
    entries: [u32; OUT_LABELS_MAX],
}

impl Default for OutLabels {
    fn default() -> OutLabels {
        OutLabels::NONE
    }
}

/// One label of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutLabel {
    /// Its value, 20 bits.
    pub label: u32,
    /// Its traffic class where the mode is pipe, 0 to 7.
    pub class: u8,
    /// Its TTL where the mode is pipe.
    pub ttl: u8,
}

impl OutLabel {
    /// A label of this value, with the TTL and the class that tell nothing.
    pub fn new(label: u32) -> OutLabel {
        OutLabel { label, class: 0, ttl: PIPE_TTL }
    }

    const fn entry(self) -> u32 {
        (self.label & LABEL_MAX) << 12 | (self.class as u32 & 7) << 9 | self.ttl as u32
    }
}

impl OutLabels {
    /// No label. It is the least of all stacks.
    pub const NONE: OutLabels =
        OutLabels { count: 0, mode: LabelMode::Pipe, entries: [0; OUT_LABELS_MAX] };
    /// The greatest of all stacks in order.
    pub(crate) const LAST: OutLabels =
        OutLabels { count: u8::MAX, mode: LabelMode::Uniform, entries: [u32::MAX; OUT_LABELS_MAX] };

    /// A stack, the label that is sent first in front; `None` when there are more than
    /// [`OUT_LABELS_MAX`]. The mode of no labels is that of the label that a route takes off.
    pub fn new(mode: LabelMode, labels: impl IntoIterator<Item = OutLabel>) -> Option<OutLabels> {
        let mut all = OutLabels { mode, ..OutLabels::NONE };
        for label in labels {
            *all.entries.get_mut(usize::from(all.count))? = label.entry();
            all.count += 1;
        }
        Some(all)
    }

    /// Labels of these values.
    pub fn of(labels: &[u32]) -> Option<OutLabels> {
        OutLabels::new(LabelMode::Pipe, labels.iter().map(|label| OutLabel::new(*label)))
    }

    /// Is there no label?
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// How many labels.
    pub fn len(&self) -> usize {
        usize::from(self.count).min(OUT_LABELS_MAX)
    }

    /// What TTL and traffic class say.
    pub fn mode(&self) -> LabelMode {
        self.mode
    }

    /// The labels, the one that is sent first in front.
    pub fn iter(&self) -> impl Iterator<Item = OutLabel> + '_ {
        let entries = self.entries.iter().take(self.len());
        entries.map(|entry| OutLabel {
            label: entry >> 12,
            class: (entry >> 9) as u8 & 7,
            ttl: *entry as u8,
        })
    }

    /// These in front of `inner`, as the mode of `inner` says, if it has labels; without implicit
    /// nulls. `None` when there are too many.
    pub fn in_front_of(self, inner: OutLabels) -> Option<OutLabels> {
        let is_unsaid = inner == OutLabels::NONE;
        let mode = if is_unsaid { self.mode } else { inner.mode };
        let all = self.iter().chain(inner.iter());
        OutLabels::new(mode, all.filter(|out| out.label != IMPLICIT_NULL))
    }

    /// The first label, and the others.
    pub fn split_first(self) -> Option<(OutLabel, OutLabels)> {
        let first = self.iter().next()?;
        Some((first, OutLabels::new(self.mode, self.iter().skip(1))?))
    }

    /// The words of commands; empty without labels.
    pub fn words(&self) -> String {
        let Some(first) = self.iter().next() else {
            let is_uniform = self.mode == LabelMode::Uniform;
            return if is_uniform { " uniform".to_owned() } else { String::new() };
        };
        let mut words = format!(" out-labels {self}");
        match self.mode {
            LabelMode::Uniform => words += " uniform",
            LabelMode::Pipe => {
                if first.ttl != PIPE_TTL {
                    words += &format!(" ttl {}", first.ttl);
                }
                if first.class != 0 {
                    words += &format!(" exp {}", first.class);
                }
            }
        }
        words
    }

    /// The entries as they stand on the wire, without the bottom bit. In uniform mode traffic class
    /// and TTL are 0.
    pub fn bytes(&self) -> Vec<u8> {
        let entry = |out: OutLabel| match self.mode {
            LabelMode::Pipe => out.entry(),
            LabelMode::Uniform => OutLabel { class: 0, ttl: 0, ..out }.entry(),
        };
        self.iter().flat_map(|out| entry(out).to_be_bytes()).collect()
    }
}

/// A label as commands and shows write it (RFC 3032 §2.1).
pub fn label_words(label: u32) -> String {
    match label {
        special::IP4_EXPLICIT_NULL => "ip4-explicit-null".to_owned(),
        special::ROUTER_ALERT => "router-alert".to_owned(),
        special::IP6_EXPLICIT_NULL => "ip6-explicit-null".to_owned(),
        IMPLICIT_NULL => "implicit-null".to_owned(),
        _ => label.to_string(),
    }
}

impl fmt::Display for OutLabels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, out) in self.iter().enumerate() {
            let space = if place == 0 { "" } else { " " };
            write!(f, "{space}{}", label_words(out.label))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(labels: &[u32]) -> OutLabels {
        OutLabels::of(labels).expect("few labels")
    }

    #[test]
    fn the_labels_of_the_route_behind_come_first_and_implicit_nulls_vanish() {
        let both = of(&[100, 3]).in_front_of(of(&[200, 300])).expect("few labels");
        assert_eq!(both.to_string(), "100 200 300");
        assert_eq!(both.bytes()[..4], [0, 0x06, 0x40, 255]);
        assert_eq!(of(&[3]).in_front_of(OutLabels::NONE), Some(OutLabels::NONE));
        let many = of(&[16; OUT_LABELS_MAX]);
        assert_eq!(many.in_front_of(of(&[17])), None);
        assert_eq!(of(&[7, 8]).split_first().map(|(_, rest)| rest), Some(of(&[8])));
    }

    #[test]
    fn a_uniform_stack_has_neither_ttl_nor_class_of_its_own() {
        let out = OutLabel { label: 16, class: 5, ttl: 9 };
        let pipe = OutLabels::new(LabelMode::Pipe, [out]).expect("one");
        let uniform = OutLabels::new(LabelMode::Uniform, [out]).expect("one");
        assert_eq!(pipe.bytes(), [0, 1, 0x0a, 9]);
        assert_eq!(uniform.bytes(), [0, 1, 0, 0]);
    }
}
