//! Lines about many consecutive prefixes, as `ip route add 10.0.0.0/24 count 256 …`: cut where
//! lines of the other configuration begin and end, so that what is the same in both stays.

use std::net::IpAddr;

use super::hash::Map;
use super::line::Said;
use super::reader::Line;
use crate::args::Slot;
use crate::value::{IpPrefix, Value};
use crate::words::Word;

/// Stand for the first prefix and the count in texts of a line; no line has them.
const PREFIX: &str = "\u{1}";
const COUNT: &str = "\u{2}";

/// Consecutive prefixes of one length.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Run {
    first: IpPrefix,
    count: u64,
    /// The words of the prefix and of the count, from 0.
    prefix_word: usize,
    count_word: Option<usize>,
}

impl Run {
    /// What these arguments are about.
    pub(super) fn of(
        (prefix, count): (&str, &str),
        names: &[&'static str],
        slots: &[Slot<'_>],
    ) -> Option<Run> {
        let find = |name: &str| slots.iter().find(|slot| slot.name_in(names) == name);
        let slot = find(prefix)?;
        let Value::Prefix(first) = slot.value else { return None };
        if first.has_host_bits() {
            return None; // refused when it is executed
        }
        let counted = find(count);
        let number = match counted.map(|slot| slot.value) {
            Some(Value::Number(number)) => number,
            _ => 1,
        };
        let count_word = counted.map(|slot| usize::from(slot.word));
        Some(Run { first, count: number, prefix_word: usize::from(slot.word), count_word })
    }

    /// Is it about more than one?
    pub(super) fn is_many(&self) -> bool {
        self.count > 1
    }

    /// What stands in the texts of the line for its prefix and count: marks where it may be cut,
    /// the prefix in its usual form otherwise.
    pub(super) fn places<'t>(
        &self,
        (prefix, count): (&'t str, &'t str),
        first: &'t str,
    ) -> Vec<(&'t str, &'t str)> {
        match self.is_many() {
            true => vec![(prefix, PREFIX), (count, COUNT)],
            false => vec![(prefix, first)],
        }
    }

    /// The first prefix as it is written.
    pub(super) fn first(&self) -> String {
        self.first.to_string()
    }

    fn bits(&self) -> u32 {
        if self.first.address.is_ipv4() { 32 } else { 128 }
    }

    /// The number of the first prefix among those of its length.
    fn start(&self) -> u128 {
        let address = match self.first.address {
            IpAddr::V4(address) => u128::from(address.to_bits()),
            IpAddr::V6(address) => address.to_bits(),
        };
        address.checked_shr(self.bits() - u32::from(self.first.length)).unwrap_or(0)
    }

    fn end(&self) -> u128 {
        self.start().saturating_add(u128::from(self.count))
    }

    /// The part of it between two such numbers.
    fn between(&self, from: u128, to: u128) -> Run {
        let shift = self.bits() - u32::from(self.first.length);
        let address = from.checked_shl(shift).unwrap_or(0);
        let address = match self.first.address {
            IpAddr::V4(_) => IpAddr::V4((address as u32).into()),
            IpAddr::V6(_) => IpAddr::V6(address.into()),
        };
        let first = IpPrefix { address, length: self.first.length };
        Run { first, count: (to - from) as u64, ..*self }
    }

    fn fill(&self, text: &str) -> String {
        let counted = match self.count {
            1 => text.replace(&format!(" count {COUNT}"), ""),
            count => text.replace(COUNT, &count.to_string()),
        };
        counted.replace(PREFIX, &self.first.to_string())
    }
}

/// The words of a line, and what stands between them.
pub(super) struct LineWords(pub(super) Vec<String>, Vec<usize>);

impl LineWords {
    /// One line, with one space between words.
    pub(super) fn join(&self) -> String {
        join(&self.0)
    }

    /// The words behind the first `lead`, without the word that was written as `flag`.
    pub(super) fn without(&self, lead: usize, flag: Option<usize>) -> String {
        let words = self.0.iter().zip(&self.1);
        let kept = words.filter(|(_, at)| **at >= lead && Some(**at) != flag);
        join(&kept.map(|(word, _)| word.clone()).collect::<Vec<_>>())
    }
}

fn join(words: &[String]) -> String {
    let mut out = String::with_capacity(words.iter().map(|word| word.len() + 1).sum());
    for word in words {
        if !out.is_empty() && word != "," {
            out.push(' ');
        }
        out.push_str(word);
    }
    out
}

/// The words of a line without its comment, with the marks of its run in place of prefix and count.
pub(super) fn words_of(line: &str, words: &[Word], run: Option<&Run>) -> LineWords {
    let (mut out, mut places) = (Vec::with_capacity(words.len()), Vec::new());
    let count = run.and_then(|run| run.count_word);
    for (at, word) in words.iter().enumerate() {
        if count.is_some_and(|count| at == count || at + 1 == count) {
            continue;
        }
        places.push(at);
        match run {
            Some(run) if run.prefix_word == at => out.push(format!("{PREFIX} count {COUNT}")),
            _ if word.quoted => out.push(format!("\"{}\"", word.text(line))),
            _ => out.push(word.text(line).to_owned()),
        }
    }
    LineWords(out, places)
}

/// What a line is about, for its meaning.
pub(super) fn prefix_and_count(places: &[(&str, &str)]) -> String {
    match places {
        [_, _] => format!("{PREFIX} count {COUNT}"),
        [(_, first)] => (*first).to_owned(),
        _ => String::new(),
    }
}

/// A text with marks as a line that parses.
pub(super) fn parsable(text: &str) -> String {
    text.replace(&format!(" count {COUNT}"), "").replace(PREFIX, "::/0")
}

/// A line about all of its run; the texts of one that may be cut have the marks. Lines of one
/// command about one table have one `class`.
pub(super) fn whole(said: Said, run: Run, class: String) -> Said {
    if !run.is_many() {
        let run = Some(Box::new(Counted { run, class, marked: None }));
        return Said { run, ..said };
    }
    let filled = filled(&said, &run);
    let run = Some(Box::new(Counted { run, class, marked: Some(said) }));
    Said { run, ..filled }
}

/// The run of a line.
#[derive(Clone, Debug)]
pub(super) struct Counted {
    run: Run,
    /// The same for lines of one command about one table.
    class: String,
    /// The line with the marks in its texts, where it may be cut.
    marked: Option<Said>,
}

fn filled(marked: &Said, run: &Run) -> Said {
    let mut said = marked.clone();
    let fill = |text: &mut String| *text = run.fill(text);
    fill(&mut said.text);
    fill(&mut said.meaning);
    said.undo.iter_mut().for_each(fill);
    if let Some(exchange) = &mut said.exchange {
        fill(&mut exchange.key);
        fill(&mut exchange.command);
    }
    said
}

/// Where lines of one class and one length begin and end.
#[derive(Default)]
pub(super) struct Ends(Map<(String, u8, bool), Vec<u128>>);

impl Ends {
    /// The ends of the lines of both configurations; nothing when no line is about many prefixes.
    pub(super) fn of(before: &[Line], after: &[Line]) -> Option<Ends> {
        let counted = || before.iter().chain(after).filter_map(|line| line.said.run.as_deref());
        if !counted().any(|counted| counted.run.count > 1) {
            return None;
        }
        let mut ends = Ends::default();
        for counted in counted() {
            let all = ends.0.entry(counted.key()).or_default();
            all.extend([counted.run.start(), counted.run.end()]);
        }
        ends.0.values_mut().for_each(|all| {
            all.sort_unstable();
            all.dedup();
        });
        Some(ends)
    }

    /// The lines, those of many prefixes cut at the ends of others.
    pub(super) fn cut(&self, lines: Vec<Line>) -> Vec<Line> {
        let mut out = Vec::with_capacity(lines.len());
        for line in lines {
            let Some((counted, marked)) = line.said.run.as_deref().and_then(Counted::many) else {
                out.push(line);
                continue;
            };
            let ends = self.0.get(&counted.key()).map_or(&[][..], Vec::as_slice);
            let (mut from, end) = (counted.run.start(), counted.run.end());
            let first = ends.partition_point(|at| *at <= from);
            for to in ends[first..].iter().copied().take_while(|at| *at <= end) {
                let part = counted.run.between(from, to);
                out.push(Line { number: line.number, said: filled(marked, &part).into() });
                from = to;
            }
        }
        out
    }
}

impl Counted {
    fn key(&self) -> (String, u8, bool) {
        (self.class.clone(), self.run.first.length, self.run.first.address.is_ipv4())
    }

    fn many(&self) -> Option<(&Counted, &Said)> {
        self.marked.as_ref().map(|marked| (self, marked))
    }
}
