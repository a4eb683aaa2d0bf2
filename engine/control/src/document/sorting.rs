//! The order of commands that a document says: a document has none.

use std::collections::{HashMap, HashSet};

/// What a line makes and needs.
pub(crate) struct Objects {
    pub(crate) command: usize,
    pub(crate) makes: Vec<String>,
    pub(crate) stands_on: Vec<String>,
    /// It says what is so without it.
    pub(crate) says_nothing: bool,
}

/// Places of lines: each behind those that make what it needs, otherwise as they are.
pub(super) fn sorted(objects: &[Objects], makers: &HashMap<&str, Vec<usize>>) -> Vec<usize> {
    let mut order = Vec::with_capacity(objects.len());
    let mut begun: HashSet<usize> = HashSet::new();
    // Lines under way, each with the lines before it that are left.
    let mut stack: Vec<(usize, Vec<usize>)> = Vec::new();
    let before = |at: usize| -> Vec<usize> {
        let needs = objects[at].stands_on.iter().filter_map(|object| makers.get(object.as_str()));
        let mut needs: Vec<usize> = needs
            .flatten()
            .copied()
            .filter(|maker| objects[*maker].command != objects[at].command)
            .collect();
        needs.sort_unstable_by(|one, other| other.cmp(one));
        needs
    };
    for at in 0..objects.len() {
        if begun.insert(at) {
            stack.push((at, before(at)));
        }
        while let Some((line, left)) = stack.last_mut() {
            match left.pop() {
                Some(next) if begun.insert(next) => stack.push((next, before(next))),
                Some(_) => {}
                None => {
                    order.push(*line);
                    stack.pop();
                }
            }
        }
    }
    order
}
