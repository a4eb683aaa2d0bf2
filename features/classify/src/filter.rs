//! Filters of traces and captures: a packet is chosen when it matches one of some rules.

use quiver_core::graph::filter::PacketFilter;

use crate::key::{Key, load, masked};
use crate::mask::{Mask, Mistake};

/// Rules of a filter at most: each packet is compared with all of them.
pub const RULES_MAX: usize = 32;

/// A mask, and what packets must have under it.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    mask: Mask,
    value: Key,
}

impl Rule {
    /// Read `MASK match MATCH`.
    ///
    /// # Errors
    /// The text is no rule.
    pub fn read(text: &str) -> Result<Rule, Mistake> {
        let words: Vec<&str> = text.split_ascii_whitespace().collect();
        let Some(at) = words.iter().position(|word| *word == "match") else {
            return Err(Mistake {
                what: "the mask is not followed by match".to_owned(),
                remedy: "as in mask l3 ip4 src match l3 ip4 src 192.0.2.1",
            });
        };
        let mask = Mask::read(&words[..at].join(" "))?;
        let value = mask.read_match(&words[at + 1..].join(" "))?;
        Ok(Rule { mask, value })
    }

    /// Does a packet that begins with these bytes match?
    pub fn matches(&self, bytes: &[u8]) -> bool {
        masked(&load(self.mask.form, bytes, false), &self.mask.key) == self.value
    }

    /// The rule's mask and match, in words.
    pub fn words(&self) -> (String, String) {
        (self.mask.to_string(), self.mask.write_match(&self.value))
    }
}

/// A filter, as workers have it.
#[derive(Clone, Debug, Default)]
pub struct Rules(pub Vec<Rule>);

impl PacketFilter for Rules {
    fn chooses(&self, bytes: &[u8]) -> bool {
        self.0.iter().any(|rule| rule.matches(bytes))
    }
}
