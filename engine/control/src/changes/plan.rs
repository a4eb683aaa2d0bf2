//! Two configurations side by side: which lines stay, and the commands that lead from the one to
//! the other.

use super::hash::{Map, Set};
use super::reader::Line;
use super::runs::Ends;
use super::{Change, Changes, Mistake};
use crate::error::Refusal;

/// What leads from the lines `before` to the lines `after`. Needs nothing of the router, and may
/// run on any thread.
///
/// # Errors
/// Lines that cannot be taken back.
pub(crate) fn between(before: Vec<Line>, after: Vec<Line>) -> Result<Changes, Vec<Mistake>> {
    let (before, after) = match Ends::of(&before, &after) {
        Some(ends) => (ends.cut(before), ends.cut(after)),
        None => (before, after),
    };
    let plan = Plan::new(&before, &after);
    let lost = plan.gone().filter_map(|line| line.said.stays.map(|why| (line, why)));
    let lost: Vec<Mistake> = lost
        .map(|(line, why)| Mistake {
            line: 0,
            column: 0,
            refusal: Refusal::new(format!("`{}` cannot be taken back: {why}", line.said.text)),
        })
        .collect();
    match lost.is_empty() {
        true => Ok(plan.changes()),
        false => Err(lost),
    }
}

/// What becomes of a line of the configuration before.
#[derive(Clone, Copy)]
enum Fate<'a> {
    /// It is in both.
    Stays,
    /// This line takes its place.
    Replaced(&'a Line),
    /// The line at this place is executed as its exchange.
    Exchanged(usize),
    /// It is taken back.
    Gone,
}

struct Plan<'a> {
    before: &'a [Line],
    after: &'a [Line],
    before_ids: Identities,
    after_ids: Identities,
    fates: Vec<Fate<'a>>,
}

impl<'a> Plan<'a> {
    fn new(before: &'a [Line], after: &'a [Line]) -> Plan<'a> {
        // Objects that are made anew although the lines that make them are in both.
        let mut remade: Set<&str> = Set::default();
        loop {
            let plan = Plan::with(before, after, &remade);
            let more = plan.to_remake(&remade);
            if more.is_empty() {
                return plan;
            }
            remade.extend(more);
        }
    }

    fn with(before: &'a [Line], after: &'a [Line], remade: &Set<&str>) -> Plan<'a> {
        let mut numbers = Numbers::default();
        let before_ids = numbers.of(before, remade, 1);
        let after_ids = numbers.of(after, remade, 2);
        let mut plan = Plan { before, after, before_ids, after_ids, fates: Vec::new() };
        plan.fates = plan.fates();
        plan
    }

    /// Objects that lines go with which do not stay, and that do stay themselves.
    fn to_remake(&self, remade: &Set<&str>) -> Vec<&'a str> {
        let objects: Set<&str> =
            self.gone().filter_map(|line| line.said.goes_with.as_deref()).collect();
        if objects.is_empty() {
            return Vec::new();
        }
        let made = self.before.iter().zip(&self.fates);
        made.filter(|(_, fate)| matches!(fate, Fate::Stays))
            .flat_map(|(line, _)| &line.said.makes)
            .map(String::as_str)
            .filter(|object| objects.contains(object) && !remade.contains(object))
            .collect()
    }

    fn fates(&self) -> Vec<Fate<'a>> {
        let stays: Set<u32> = self.after_ids.ids.iter().copied().collect();
        let was: Set<u32> = self.before_ids.ids.iter().copied().collect();
        let is_new = |at: usize| !was.contains(&self.after_ids.ids[at]);
        // The new line of each key that takes the place of an earlier one: it needs no inverse.
        let mut keys: Map<u32, &Line> = Map::default();
        // The first line of each exchange, where all that are about the same are new.
        let mut exchanges: Map<&str, Option<usize>> = Map::default();
        for (at, line) in self.after.iter().enumerate() {
            if let Some(key) = self.after_ids.keys[at].filter(|_| is_new(at)) {
                keys.insert(key, line);
            }
            if let Some(exchange) = &line.said.exchange {
                // Others behind the first one join it.
                let first = exchanges.entry(&exchange.key).or_insert(Some(at));
                *first = first.filter(|_| is_new(at));
            }
        }
        let mut counts: Map<&str, u32> = Map::default();
        for exchange in self.before.iter().filter_map(|line| line.said.exchange.as_ref()) {
            *counts.entry(&exchange.key).or_default() += 1;
        }
        let fate = |at: usize| {
            if stays.contains(&self.before_ids.ids[at]) {
                return Fate::Stays;
            }
            if let Some(by) = self.before_ids.keys[at].and_then(|key| keys.get(&key).copied()) {
                return Fate::Replaced(by);
            }
            let exchange = self.before[at].said.exchange.as_ref();
            let exchange = exchange.filter(|exchange| counts[exchange.key.as_str()] == 1);
            let by = exchange.and_then(|exchange| exchanges.get(exchange.key.as_str()).copied());
            // What it stands on must be there until then.
            let is_standing = self.before_ids.on[at].iter().all(|id| stays.contains(id));
            match by.flatten() {
                Some(by) if is_standing => Fate::Exchanged(by),
                _ => Fate::Gone,
            }
        };
        (0..self.before.len()).map(fate).collect()
    }

    /// Lines that are taken back.
    fn gone(&self) -> impl Iterator<Item = &'a Line> + '_ {
        let lines = self.before.iter().zip(&self.fates);
        lines.filter(|(_, fate)| matches!(fate, Fate::Gone)).map(|(line, _)| line)
    }

    fn changes(&self) -> Changes {
        let was: Set<u32> = self.before_ids.ids.iter().copied().collect();
        let is_new = |at: usize| !was.contains(&self.after_ids.ids[at]);
        // Limits are lifted while anything else is added.
        let lifts = (0..self.after.len()).any(|at| is_new(at) && !self.after[at].said.is_limit);
        let mut changes = Changes::default();
        let only_in = |here: &[Line], there: &[Line]| -> Vec<String> {
            let said: Set<&str> = there.iter().map(|line| line.said.meaning.as_str()).collect();
            let lines = here.iter().filter(|line| !said.contains(line.said.meaning.as_str()));
            lines.map(|line| line.said.text.clone()).collect()
        };
        changes.removed = only_in(self.before, self.after);
        changes.added = only_in(self.after, self.before);
        let mut exchanged: Set<usize> = Set::default();
        for (line, fate) in self.before.iter().zip(&self.fates).rev() {
            let said = &line.said;
            let command = match fate {
                _ if said.is_limit && lifts => said.undo.as_ref(),
                Fate::Exchanged(by) => {
                    exchanged.insert(*by);
                    None
                }
                Fate::Stays => None,
                _ if said.goes_with.is_some() => None,
                Fate::Gone => said.undo.as_ref(),
                Fate::Replaced(by) if said.says.iter().all(|name| by.said.says.contains(name)) => {
                    None
                }
                Fate::Replaced(_) => said.reset.as_ref(),
            };
            let undo = command.map(|command| Change { command: command.clone(), line: None });
            changes.commands.extend(undo);
        }
        let mut done: Set<u32> = Set::default();
        for (at, line) in self.after.iter().enumerate() {
            let (said, is_first) = (&line.said, done.insert(self.after_ids.ids[at]));
            if is_first && (is_new(at) || said.is_limit && lifts) {
                let exchange = said.exchange.as_ref().filter(|_| exchanged.contains(&at));
                let command = exchange.map_or(&said.text, |exchange| &exchange.command).clone();
                changes.commands.push(Change { command, line: Some(line.number) });
            }
        }
        changes
    }
}

/// What the lines of a configuration are, for comparison.
struct Identities {
    /// By what they say and what they stand on: the same line in both configurations has one.
    ids: Vec<u32>,
    /// The same of their keys.
    keys: Vec<Option<u32>>,
    /// The lines that each stands on.
    on: Vec<Vec<u32>>,
}

/// Gives lines numbers: one to lines that say the same and stand on the same.
#[derive(Default)]
struct Numbers<'a>(Map<(&'a str, Vec<u32>, u8), u32>);

impl<'a> Numbers<'a> {
    /// The identities of lines. Lines that make what is `remade` differ by `side`.
    fn of(&mut self, lines: &'a [Line], remade: &Set<&str>, side: u8) -> Identities {
        let mut makers: Map<&str, Vec<u32>> = Map::default();
        let mut all = Identities { ids: Vec::new(), keys: Vec::new(), on: Vec::new() };
        for Line { said, .. } in lines {
            let on = said.stands_on.iter().filter_map(|object| makers.get(object.as_str()));
            let mut on: Vec<u32> = on.flatten().copied().collect();
            on.sort_unstable();
            on.dedup();
            let is_remade = said.makes.iter().any(|object| remade.contains(object.as_str()));
            let side = if is_remade { side } else { 0 };
            all.keys.push(said.key.as_ref().map(|key| self.number(key, on.clone(), side)));
            let id = self.number(&said.meaning, on.clone(), side);
            all.ids.push(id);
            all.on.push(on);
            for object in &said.makes {
                makers.entry(object).or_default().push(id);
            }
        }
        all
    }

    fn number(&mut self, text: &'a str, on: Vec<u32>, side: u8) -> u32 {
        let next = self.0.len() as u32;
        *self.0.entry((text, on, side)).or_insert(next)
    }
}
