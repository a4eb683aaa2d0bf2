//! Many invocations of one command in a row, as in a file of routes, read together: most lines
//! differ from the one before in one value only, and need no second look at the rest.
//!
//! What was matched once serves every line that is the same but for that value: what stands before
//! it (the *head*) leads the matcher to the same place, and what stands behind it (the *tail*) from
//! there to the same end. Everything else goes through the matcher, which alone knows the grammar.

use crate::args::{Args, Slot};
use crate::error::Refusal;
use crate::grammar::Commands;
use crate::matcher::Matcher;
use crate::names::Names;
use crate::types::ValueType;
use crate::value::Value;
use crate::words::{self, End, Word};

/// So many commands of a kind are handed over at once.
pub const BATCH_COMMANDS_MAX: usize = 65_536;

/// Heads that are remembered.
const HEADS_MAX: usize = 4;

/// Tails that are remembered, a power of two: as many as next hops are in use at a time.
const TAILS_MAX: usize = 1024;

/// Many invocations of one command. Those of one *form* are the same but for the value that the
/// command's declaration says [varies](crate::Command::run_many).
pub struct Batch<'a> {
    names: &'a [&'static str],
    command: &'a str,
    /// The slots of all forms, one form after the other.
    slots: Vec<Slot<'a>>,
    forms: Vec<Form>,
    rows: Vec<Row<'a>>,
}

#[derive(Clone, Copy)]
struct Form {
    start: u32,
    end: u32,
    /// The slot of the value that varies.
    varying: Option<u32>,
}

#[derive(Clone, Copy)]
struct Row<'a> {
    form: u32,
    value: Option<Value<'a>>,
}

/// A batch was refused at one of its invocations; those before it were applied.
#[derive(Debug)]
pub struct BatchRefusal {
    /// How many were applied; the next is refused.
    pub applied: usize,
    /// Why it is refused.
    pub refusal: Refusal,
}

impl<'a> Batch<'a> {
    /// How many invocations there are.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Are there none?
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// How many forms there are.
    pub fn forms(&self) -> usize {
        self.forms.len()
    }

    /// The arguments of a form, with the varying value of its first invocation.
    pub fn form(&self, form: usize) -> Args<'_> {
        let Form { start, end, .. } = self.forms[form];
        Args {
            names: self.names,
            slots: &self.slots[start as usize..end as usize],
            command: self.command,
            access: None,
        }
    }

    /// The form and the varying value of each invocation, in the order written.
    pub fn rows(&self) -> impl Iterator<Item = (usize, Option<Value<'a>>)> {
        self.rows.iter().map(|row| (row.form as usize, row.value))
    }

    /// Look at the arguments of one invocation.
    pub fn with<R>(&self, at: usize, look: impl FnOnce(&Args<'_>) -> R) -> R {
        let row = self.rows[at];
        let Form { start, end, varying } = self.forms[row.form as usize];
        let mut slots = self.slots[start as usize..end as usize].to_vec();
        if let (Some(place), Some(value)) = (varying, row.value) {
            slots[(place - start) as usize].value = value;
        }
        look(&Args { names: self.names, slots: &slots, command: self.command, access: None })
    }

    /// Do one after the other, up to the first that is refused. Returns how many there are.
    ///
    /// # Errors
    /// The first refusal of `run`, with the number of lines that were applied before.
    pub fn each(
        &self,
        mut run: impl FnMut(&Args<'_>) -> Result<(), Refusal>,
    ) -> Result<usize, BatchRefusal> {
        for applied in 0..self.len() {
            self.with(applied, &mut run).map_err(|refusal| BatchRefusal { applied, refusal })?;
        }
        Ok(self.len())
    }

    /// The slots of the first invocation.
    pub(crate) fn first(&self) -> &[Slot<'a>] {
        let Form { start, end, .. } = self.forms[0];
        &self.slots[start as usize..end as usize]
    }
}

/// Where a command of a batch stands.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    /// First byte behind it.
    pub end: usize,
    /// Its first line.
    pub line: u32,
    /// The line behind it.
    pub next_line: u32,
}

/// What stands before the value that varies.
struct Head<'a, 'm> {
    text: &'a str,
    /// The type that the matcher takes there, whatever the text, as long as it reads.
    value_type: &'m ValueType,
    /// What stood behind it, and the form that came of it.
    tails: Vec<Option<(&'a str, u32)>>,
}

/// Commands of a kind, gathered from a script.
pub(crate) struct Gathered<'a, 'm> {
    pub batch: Batch<'a>,
    pub places: Vec<Place>,
    matcher: &'m Matcher,
    form: usize,
    varies: Option<u16>,
    heads: Vec<Head<'a, 'm>>,
}

impl<'a> Gathered<'a, 'a> {
    /// Begin with a command that was matched as `form`.
    pub fn new<S>(
        commands: &'a Commands<S>,
        form: usize,
        varies: &str,
        slots: Vec<Slot<'a>>,
        place: Place,
    ) -> Gathered<'a, 'a> {
        let names = &commands.matcher.automata[form].names;
        let batch = Batch {
            names,
            command: &commands.forms[form].name,
            slots,
            forms: Vec::new(),
            rows: Vec::new(),
        };
        let varies = names.iter().position(|name| *name == varies).map(|index| index as u16);
        let mut gathered = Gathered {
            batch,
            places: Vec::new(),
            matcher: &commands.matcher,
            form,
            varies,
            heads: Vec::new(),
        };
        gathered.push_form(0, place);
        gathered
    }

    /// Take the commands that follow in `text`, as long as they are of the same kind, up to `most`
    /// in all.
    pub fn fill(&mut self, most: usize, names: &dyn Names, text: &'a str, words: &mut Vec<Word>) {
        let Some(Place { mut end, next_line: mut line, .. }) = self.places.last().copied() else {
            return;
        };
        while self.batch.len() < most {
            let rest = &text[end..];
            if let Some((length, row)) = self.known(rest) {
                self.batch.rows.push(row);
                self.places.push(Place { end: end + length, line, next_line: line + 1 });
                (end, line) = (end + length, line + 1);
                continue;
            }
            let Some((length, Ok(End::Complete))) = words::logical_line(rest, words, true) else {
                break;
            };
            let next_line = line + lines_in(&rest[..length]);
            if !words.is_empty() {
                let before = self.batch.slots.len();
                match self.matcher.parse(names, rest, words, &mut self.batch.slots) {
                    Ok(form) if form as usize == self.form => {}
                    _ => {
                        self.batch.slots.truncate(before);
                        break;
                    }
                }
                self.push_form(before, Place { end: end + length, line, next_line });
                if next_line == line + 1 {
                    self.remember(names, &rest[..length], words);
                }
            }
            (end, line) = (end + length, next_line);
        }
    }

    /// Enter the command whose slots are those from `start` on.
    fn push_form(&mut self, start: usize, place: Place) {
        let slots = &self.batch.slots[start..];
        let varying = slots.iter().position(|slot| Some(slot.name) == self.varies);
        let row =
            Row { form: self.batch.forms.len() as u32, value: varying.map(|at| slots[at].value) };
        let (start, end) = (start as u32, self.batch.slots.len() as u32);
        let varying = varying.map(|at| start + at as u32);
        self.batch.forms.push(Form { start, end, varying });
        self.batch.rows.push(row);
        self.places.push(place);
    }

    /// The next line, if it is one that was seen but for the value that varies. Also its length.
    #[inline]
    fn known(&mut self, rest: &'a str) -> Option<(usize, Row<'a>)> {
        let at = self.heads.iter().position(|head| rest.starts_with(head.text))?;
        let head = &self.heads[at];
        let bytes = &rest.as_bytes()[head.text.len()..];
        let value_end =
            bytes.iter().position(|byte| matches!(byte, b'\t'..=b'\r' | b' ' | b'{' | b'}'))?;
        let line_end = value_end + bytes[value_end..].iter().position(|byte| *byte == b'\n')?;
        let (start, tail_start) = (head.text.len(), head.text.len() + value_end);
        let tail = rest.get(tail_start..start + line_end)?;
        let (known, form) = head.tails[tail_place(tail)]?;
        if known != tail {
            return None;
        }
        let value = head.value_type.read(rest.get(start..tail_start)?, false)?;
        self.heads.swap(0, at);
        Some((start + line_end + 1, Row { form, value: Some(value) }))
    }

    /// Remember how the last command came about, which stands in `line` alone.
    fn remember(&mut self, names: &dyn Names, line: &'a str, words: &[Word]) {
        let Some(Form { varying: Some(place), .. }) = self.batch.forms.last().copied() else {
            return;
        };
        let at = usize::from(self.batch.slots[place as usize].word);
        let (Some(word), Some(body)) = (words.get(at), line.strip_suffix('\n')) else { return };
        let (Some(text), Some(tail)) =
            (line.get(..word.start as usize), body.get(word.end as usize..))
        else {
            return;
        };
        if word.quoted {
            return;
        }
        let head = match self.heads.iter().position(|head| head.text == text) {
            Some(known) => known,
            None => {
                let Some(value_type) = self.matcher.sure_type(names, line, &words[..at]) else {
                    return;
                };
                self.heads.truncate(HEADS_MAX - 1);
                self.heads.insert(0, Head { text, value_type, tails: vec![None; TAILS_MAX] });
                0
            }
        };
        let form = self.batch.forms.len() as u32 - 1;
        self.heads[head].tails[tail_place(tail)] = Some((tail, form));
    }
}

/// Where a tail is remembered: its last bytes differ most.
#[inline]
fn tail_place(tail: &str) -> usize {
    let last = tail.as_bytes().iter().rev().take(8);
    let mixed =
        last.fold(tail.len() as u64, |mixed, byte| mixed << 8 ^ mixed >> 56 ^ u64::from(*byte));
    (mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 54) as usize & (TAILS_MAX - 1)
}

/// Line ends in a piece of text.
pub(crate) fn lines_in(text: &str) -> u32 {
    text.bytes().filter(|byte| *byte == b'\n').count() as u32
}
