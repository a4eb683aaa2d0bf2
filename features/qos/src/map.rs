//! Egress maps: what class a packet leaves with, by the one that it came with.

use crate::class::{Class, Source};

/// Values of a class.
const VALUES: usize = 256;
/// In the place of a value: the map says nothing.
const UNMAPPED: u16 = u16::MAX;

/// A map: for each source and value of a class the value that is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EgressMap([[u16; VALUES]; Source::ALL.len()]);

/// Values of one source that follow one another and are mapped to the same value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Where the classes come from.
    pub source: Source,
    /// The first value.
    pub first: u8,
    /// The last one, at least as great.
    pub last: u8,
    /// What is written.
    pub out: u8,
}

impl Default for EgressMap {
    fn default() -> EgressMap {
        EgressMap([[UNMAPPED; VALUES]; Source::ALL.len()])
    }
}

impl EgressMap {
    /// The value that is written for a class; `None` when the packet stays as it is.
    #[inline(always)]
    pub fn value(&self, class: Class) -> Option<u8> {
        let out = self.0[class.source as usize][usize::from(class.value)];
        (out != UNMAPPED).then_some(out as u8)
    }

    /// Map the values of a run.
    ///
    /// # Errors
    /// One of them, which is returned, is mapped already.
    pub fn add(&mut self, run: Run) -> Result<(), u8> {
        let row = &mut self.0[run.source as usize];
        let mapped = |value: &u8| row[usize::from(*value)] != UNMAPPED;
        if let Some(twice) = (run.first..=run.last).find(mapped) {
            return Err(twice);
        }
        for value in run.first..=run.last {
            row[usize::from(value)] = run.out.into();
        }
        Ok(())
    }

    /// The greatest value that is written.
    pub fn out_max(&self) -> u8 {
        self.runs().map(|run| run.out).max().unwrap_or(0)
    }

    /// All of it, in as few runs as there can be, by source and value.
    pub fn runs(&self) -> impl Iterator<Item = Run> {
        Source::ALL.into_iter().flat_map(move |source| {
            let mut runs: Vec<Run> = Vec::new();
            for value in 0..=u8::MAX {
                let Some(out) = self.value(Class { source, value }) else { continue };
                match runs.last_mut() {
                    Some(run) if run.out == out && run.last.checked_add(1) == Some(value) => {
                        run.last = value;
                    }
                    _ => runs.push(Run { source, first: value, last: value, out }),
                }
            }
            runs
        })
    }
}
