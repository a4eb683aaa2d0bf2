//! Files of elements: `set acl-plugin set-file`.

use std::cell::RefCell;
use std::collections::HashSet;
use std::io::Read;
use std::rc::Rc;

use quiver_control::{Args, Job, Output, Progress, Refusal, Sink, Step, Work, in_background};
use quiver_core::Engine;
use quiver_tables::prefix::IpPrefix;
use serde_json::json;

use crate::commands::refusal;
use crate::config::Lists;
use crate::element::Element;
use crate::file::{self, Mistakes};
use crate::named_set::Kind;
use crate::rules::Range;
use crate::set_config::{self, PREFIXES_MAX, no_set};

/// Elements that a step of a load looks at.
const ELEMENTS_PER_STEP: usize = 2_048;

/// A range of ports. The error is a sentence.
pub(crate) fn ports((first, last): Range) -> Result<Element, String> {
    match (u16::try_from(first), u16::try_from(last)) {
        (Ok(first), Ok(last)) if first <= last => Ok(Element::Ports(first, last)),
        (Ok(_), Ok(_)) => Err(format!("{first}-{last} ends before it begins")),
        _ => Err(format!("a port is at most {}", u16::MAX)),
    }
}

/// A prefix; an address alone is that of one host.
pub(crate) fn network(text: &str) -> Option<IpPrefix> {
    file::prefix(text).or_else(|| text.parse().ok().map(IpPrefix::host))
}

fn prefix(text: &str) -> Result<Element, String> {
    network(text).map(Element::Prefix).ok_or_else(|| format!("'{text}' is no prefix"))
}

/// The elements of a file, in order and each once.
fn read(opened: impl Read, kind: Kind) -> Result<Vec<Element>, Mistakes> {
    let text = file::text_of(opened)?;
    let of_line = |line: &str| {
        let mut words = line.split_whitespace().take_while(|word| !word.starts_with('#'));
        let word = words.next().unwrap_or_default();
        if let Some(more) = words.next() {
            return Err(format!("'{more}' follows the element"));
        }
        match kind {
            Kind::Ports => {
                let range = file::range(word).ok_or_else(|| format!("'{word}' is no port"))?;
                ports(range)
            }
            _ => prefix(word),
        }
    };
    let mut all = file::lines(&text, 2 * PREFIXES_MAX, "elements", of_line)?;
    all.sort_unstable_by_key(|element| match element {
        Element::Prefix(prefix) => (Some(*prefix), 0, 0),
        Element::Ports(first, last) => (None, *first, *last),
        Element::Interface(_) => (None, 0, 0),
    });
    all.dedup();
    let overlap = all.windows(2).find_map(|pair| match pair {
        [Element::Ports(_, last), next @ Element::Ports(first, _)] if first <= last => {
            Some(format!("{} overlaps {next}", pair[0]))
        }
        _ => None,
    });
    overlap.map_or(Ok(all), |what| Err(Mistakes::Unreadable(what)))
}

/// Read a file in the background, then change the set in steps.
pub(crate) fn load(engine: &mut Engine, args: &Args<'_>) -> Result<Work<Engine>, Refusal> {
    let name: String = args.get("set")?;
    let lists = engine.get::<Lists>().ok_or_else(|| Refusal::new("access lists are busy"))?;
    let kind = lists.sets.get(&name).ok_or_else(|| no_set(None, &name))?.kind();
    if kind == Kind::Interfaces {
        let what = format!("{name} is a set of interfaces: these come from no file");
        return Err(Refusal::new(what).remedy("set acl-plugin interface-set NAME add IF"));
    }
    let Some((path, opened)) = args.file_to_read("file")? else {
        return Err(Refusal::new("no file"));
    };
    let file = path.display().to_string();
    let elements = Rc::new(RefCell::new(None));
    let place = elements.clone();
    let work = move || read(opened, kind).map_err(|mistakes| refusal(&file, mistakes));
    let reading = in_background(work, move |_: &mut Engine, all: Vec<Element>| {
        *place.borrow_mut() = Some(all);
        Ok(Output::none())
    })?;
    let Work::Begun(reading) = reading else { return Ok(reading) };
    Ok(Work::Begun(Box::new(Load { name, reading, elements, change: None })))
}

/// A file that is read, and then becomes the set's elements.
struct Load {
    name: String,
    reading: Box<dyn Job<Engine>>,
    elements: Rc<RefCell<Option<Vec<Element>>>>,
    change: Option<Change>,
}

/// How far a set is on its way to what a file says.
struct Change {
    wanted: Vec<Element>,
    /// As many of them are looked at.
    at: usize,
    /// All of them, once they are in the set and others are to go.
    stay: HashSet<IpPrefix>,
    /// The last element of the set that was looked at then.
    after: Option<Element>,
    added: usize,
    removed: usize,
}

impl Load {
    fn change(&mut self, engine: &mut Engine, sink: &mut dyn Sink) -> Result<Step, Refusal> {
        let Load { name, change: Some(change), .. } = self else { return Ok(Step::Again) };
        while !sink.must_pause() {
            sink.spend(ELEMENTS_PER_STEP as u64);
            let is_done = engine.with(|_, lists: &mut Lists| {
                lists.sets.get(name).ok_or_else(|| no_set(None, name))?;
                change.step(name, lists)
            })?;
            if is_done {
                set_config::match_sessions_again(engine, name);
                let Change { wanted, added, removed, .. } = change;
                let text =
                    format!("{name}: {} elements, {added} added, {removed} removed", wanted.len());
                let fields =
                    json!({ "elements": wanted.len(), "added": added, "removed": removed });
                return Ok(Step::Done(Output::both(text, fields)));
            }
        }
        let (what, total) = (format!("elements of {name}"), change.wanted.len() as u64);
        sink.progress(Progress { what, done: change.at as u64, total });
        Ok(Step::Again)
    }
}

impl Change {
    /// Of ports, those that go make room for others first: ranges may not overlap. Of addresses,
    /// new ones are there before others go. True when all is done.
    fn step(&mut self, name: &str, lists: &mut Lists) -> Result<bool, Refusal> {
        let is_of_ports = matches!(self.wanted.first(), Some(Element::Ports(..)));
        if is_of_ports || self.at >= self.wanted.len() {
            if self.remove_others(name, lists)? {
                return Ok(self.at >= self.wanted.len() || self.add(name, lists)?);
            }
            return Ok(false);
        }
        self.add(name, lists)?;
        Ok(false)
    }

    /// True when all are added.
    fn add(&mut self, name: &str, lists: &mut Lists) -> Result<bool, Refusal> {
        for element in self.wanted.iter().skip(self.at).take(ELEMENTS_PER_STEP) {
            self.added += usize::from(lists.sets.add(name, *element)?);
            self.at += 1;
        }
        Ok(self.at >= self.wanted.len())
    }

    /// True when all others are gone.
    fn remove_others(&mut self, name: &str, lists: &mut Lists) -> Result<bool, Refusal> {
        let found = lists.sets.elements(name, self.after, ELEMENTS_PER_STEP);
        for element in &found {
            let stays = match element {
                Element::Prefix(prefix) => self.stay.contains(prefix),
                other => self.wanted.contains(other),
            };
            if !stays {
                self.removed += usize::from(lists.sets.del(name, *element)?);
            }
        }
        self.after = found.last().copied().or(self.after);
        Ok(found.is_empty())
    }
}

impl Job<Engine> for Load {
    fn step(&mut self, engine: &mut Engine, sink: &mut dyn Sink) -> Result<Step, Refusal> {
        if self.change.is_none() {
            match self.reading.step(engine, sink)? {
                Step::Done(_) => {}
                other => return Ok(other),
            }
            let wanted = self.elements.borrow_mut().take().unwrap_or_default();
            let prefix = |element: &Element| match element {
                Element::Prefix(prefix) => Some(*prefix),
                _ => None,
            };
            let stay = wanted.iter().filter_map(prefix).collect();
            self.change = Some(Change { wanted, at: 0, stay, after: None, added: 0, removed: 0 });
        }
        self.change(engine, sink)
    }

    /// A set that is half changed goes on.
    fn must_end(&self) -> bool {
        self.change.is_some()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn elements_are_read_in_order_and_each_once() {
        let text = "10.2.0.0/16 # a network\n# none\n\n10.1.0.1\n2001:db8::/32\n10.2.3.4/16\n";
        let read = read(text.as_bytes(), Kind::Addresses).expect("reads");
        let words: Vec<String> = read.iter().map(Element::to_string).collect();
        assert_eq!(words, ["10.1.0.1/32", "10.2.0.0/16", "2001:db8::/32"]);
    }

    #[test]
    fn mistakes_are_listed_by_line() {
        let wrong = "80\n99999\n9-7\nx\n1 2\n";
        let Err(Mistakes::Lines { first, .. }) = read(wrong.as_bytes(), Kind::Ports) else {
            panic!("refused")
        };
        let lines: Vec<u32> = first.iter().map(|(line, _)| *line).collect();
        assert_eq!(lines, [2, 3, 4, 5]);
        let overlap = read("80-90\n85\n".as_bytes(), Kind::Ports);
        assert!(matches!(overlap, Err(Mistakes::Unreadable(what)) if what.contains("overlaps")));
    }

    proptest! {
        #[test]
        fn no_file_panics(bytes in prop::collection::vec(any::<u8>(), 0..300), is_ports: bool) {
            let kind = if is_ports { Kind::Ports } else { Kind::Addresses };
            let _ = read(&bytes[..], kind);
        }
    }
}
