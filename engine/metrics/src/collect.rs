//! Who has families, and how a scrape asks for them: a bounded number of things at a time.

use quiver_core::Engine;

use crate::text::{Family, Labels, Text};

/// Writes a part of a scrape: at most so many things at a call, until it returns that all are
/// written.
pub type Part = Box<dyn FnMut(&Engine, &mut Text, usize) -> bool>;

type Begin = Box<dyn Fn(&Engine, Scope) -> Part>;

/// How much a scrape has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    /// Also nodes that never ran, and reasons that were never given.
    pub all_stats: bool,
}

/// All parts of a scrape, in the order in which they were registered; kept in the engine.
#[derive(Default)]
pub(crate) struct Collectors(Vec<Begin>);

impl Collectors {
    /// Begin a part, by its place; `None` behind the last one.
    pub(crate) fn begin(engine: &Engine, place: usize, scope: Scope) -> Option<Part> {
        let begin = engine.get::<Collectors>()?.0.get(place)?;
        Some(begin(engine, scope))
    }
}

fn add(engine: &mut Engine, begin: Begin) {
    match engine.get_mut::<Collectors>() {
        Some(all) => all.0.push(begin),
        None => engine.insert(Collectors(vec![begin])),
    }
}

/// Add families that have few samples: `write` begins each family and adds its samples. Called
/// when the router starts ([`quiver_control::Registry::on_start`]).
pub fn collect(engine: &mut Engine, write: fn(&Engine, &mut Text)) {
    let part = move |_: &Engine, _| -> Part {
        Box::new(move |engine, text, _| {
            write(engine, text);
            true
        })
    };
    add(engine, Box::new(part));
}

/// A family, and how the sample of a thing is added.
pub type Sampled<K> = (Family, Box<dyn Fn(&Engine, &mut Text, &K, &Labels)>);

/// A family whose samples `add` adds.
pub fn sampled<K>(
    family: Family,
    add: impl Fn(&Engine, &mut Text, &K, &Labels) + 'static,
) -> Sampled<K> {
    (family, Box::new(add))
}

/// Add families that have samples of many things: `things` lists them with their labels when a
/// scrape begins. A thing that is gone since then has no sample.
pub fn collect_each<K: 'static>(
    engine: &mut Engine,
    things: impl Fn(&Engine, Scope) -> Vec<(K, Labels)> + 'static,
    families: Vec<Sampled<K>>,
) {
    let families = std::rc::Rc::new(families);
    let part = move |engine: &Engine, scope| -> Part {
        let (things, families) = (things(engine, scope), families.clone());
        let (mut family, mut next) = (0, 0);
        Box::new(move |engine, text, most| {
            let mut left = most;
            while let Some((declared, add)) = families.get(family) {
                if next == 0 {
                    text.family(declared);
                }
                let end = if text.takes() { things.len().min(next + left) } else { things.len() };
                if text.takes() {
                    for (thing, labels) in &things[next..end] {
                        add(engine, text, thing, labels);
                    }
                    left -= end - next;
                }
                next = end;
                if next == things.len() {
                    (family, next) = (family + 1, 0);
                }
                if left == 0 {
                    break;
                }
            }
            family == families.len()
        })
    };
    add(engine, Box::new(part));
}
