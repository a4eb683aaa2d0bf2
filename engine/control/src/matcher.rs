//! From words to a command and its values: a trie over the words that commands begin with, then
//! the automaton of the command.
//!
//! At each word the first of these that fits is taken: the word written out, a value of a type that
//! few texts satisfy, the name of something that exists where a name may stand, the only word that
//! begins so, any other text. The matcher never goes back, so a line costs what its words cost.

use std::ops::ControlFlow;

use crate::args::Slot;
use crate::automaton::{Automaton, Edge, GroupStep, Mask, State, Take};
use crate::error::{Refusal, either, nearest, printable};
use crate::names::Names;
use crate::types::{Reads, ValueType};
use crate::value::Value;
use crate::words::{WORDS_MAX, Word};

/// What operators of VPP type for `show`, whatever other commands begin with these letters.
const SHORTHAND: (&str, &str) = ("sh", "show");

/// Groups inside groups, at most.
const GROUP_DEPTH_MAX: usize = 4;

/// Candidates that a message lists.
const CANDIDATES_LISTED_MAX: usize = 12;

/// The words that commands begin with.
#[derive(Clone, Debug, Default)]
pub(crate) struct TrieNode {
    pub(crate) children: Vec<(&'static str, u32)>,
    /// Commands whose own automaton begins here.
    pub(crate) commands: Vec<u32>,
}

/// Everything the matcher needs of the declared commands.
#[derive(Clone, Debug)]
pub(crate) struct Matcher {
    pub(crate) trie: Vec<TrieNode>,
    pub(crate) automata: Vec<Automaton>,
    /// Words may be abbreviated.
    pub(crate) abbreviations: bool,
}

/// Where the matcher stands.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Here {
    /// Between the words that commands begin with.
    Trie(u32),
    /// Inside a command.
    Inside { command: u32, state: u32, mask: Mask },
}

/// What can be done with the next word.
#[derive(Clone, Copy)]
pub(crate) enum Candidate<'m> {
    /// Go on in the trie.
    Child { word: &'static str, node: u32 },
    /// Take an edge of a command.
    Edge { command: u32, edge: &'m Edge, mask: Mask },
}

/// What a word turned out to be.
struct Found<'m, 'a> {
    candidate: Candidate<'m>,
    value: Option<Value<'a>>,
    /// One past the last word taken.
    next: usize,
}

#[derive(Default)]
struct Best<'m, 'a> {
    strict: Option<Found<'m, 'a>>,
    prefix: Option<(Found<'m, 'a>, &'static str)>,
    /// A second word that begins so.
    prefix_again: bool,
    loose: Option<(Found<'m, 'a>, Option<&'static str>)>,
}

impl Matcher {
    pub(crate) fn new(abbreviations: bool) -> Matcher {
        Matcher { trie: vec![TrieNode::default()], automata: Vec::new(), abbreviations }
    }

    /// Add a command that begins with `words`.
    pub(crate) fn add(&mut self, words: &[&'static str], automaton: Automaton) {
        let command = self.automata.len() as u32;
        let mut node = 0;
        for word in words {
            node = match self.trie[node].children.iter().find(|(known, _)| known == word) {
                Some((_, child)) => *child as usize,
                None => {
                    let child = self.trie.len();
                    self.trie.push(TrieNode::default());
                    self.trie[node].children.push((word, child as u32));
                    self.trie[node].children.sort();
                    child
                }
            };
        }
        self.automata.push(automaton);
        self.trie[node].commands.push(command);
    }

    /// Our own faults: two commands that begin with the same words must differ in the next.
    pub(crate) fn check(&self) {
        for node in &self.trie {
            let mut words: Vec<&str> = node.children.iter().map(|(word, _)| *word).collect();
            let mut ends = 0;
            for command in &node.commands {
                let start = &self.automata[*command as usize].states[0];
                ends += usize::from(!start.accept.is_empty());
                let mut own: Vec<&str> = start.edges.iter().filter_map(literal_of).collect();
                own.dedup();
                words.extend(own);
            }
            words.sort_unstable();
            let double = words.windows(2).find(|pair| pair[0] == pair[1]);
            assert!(
                double.is_none(),
                "two commands differ in nothing at the word '{}'",
                double.unwrap()[0]
            );
            assert!(ends < 2, "the same command is declared twice, beside: {words:?}");
        }
    }

    /// All that can follow at `here`.
    pub(crate) fn candidates<'m>(
        &'m self,
        here: Here,
        visit: &mut dyn FnMut(Candidate<'m>) -> ControlFlow<()>,
    ) {
        match here {
            Here::Trie(node) => {
                let node = &self.trie[node as usize];
                for (word, child) in &node.children {
                    if visit(Candidate::Child { word, node: *child }).is_break() {
                        return;
                    }
                }
                for command in &node.commands {
                    for edge in &self.automata[*command as usize].states[0].edges {
                        if visit(Candidate::Edge { command: *command, edge, mask: 0 }).is_break() {
                            return;
                        }
                    }
                }
            }
            Here::Inside { command, state, mask } => {
                for edge in &self.automata[command as usize].states[state as usize].edges {
                    if edge.passage.is_open(mask)
                        && visit(Candidate::Edge { command, edge, mask }).is_break()
                    {
                        return;
                    }
                }
            }
        }
    }

    /// Match a whole command; its values are appended to `slots`. Returns which command it is.
    pub(crate) fn parse<'a>(
        &self,
        names: &dyn Names,
        line: &'a str,
        words: &[Word],
        slots: &mut Vec<Slot<'a>>,
    ) -> Result<u32, Refusal> {
        if words.len() > WORDS_MAX {
            return Err(Refusal::new(format!("the command has more than {WORDS_MAX} words")));
        }
        let mut walk = Walk::new(Here::Trie(0), slots);
        while walk.at < words.len() {
            self.advance(names, line, words, &mut walk)?;
        }
        self.finish(walk)
    }

    /// Match as many words as fit; says where that ends, and at which word it stopped.
    pub(crate) fn follow(
        &self,
        names: &dyn Names,
        line: &str,
        words: &[Word],
    ) -> (Here, usize, Option<Refusal>) {
        let mut slots = Vec::new();
        let mut walk = Walk::new(Here::Trie(0), &mut slots);
        while walk.at < words.len().min(WORDS_MAX) {
            if let Err(refusal) = self.advance(names, line, words, &mut walk) {
                return (walk.here, walk.at, Some(refusal));
            }
        }
        (walk.here, walk.at, None)
    }

    /// The type of the value behind `words`, if any text that it reads is surely taken as that
    /// value, whatever else could stand there.
    pub(crate) fn sure_type(
        &self,
        names: &dyn Names,
        line: &str,
        words: &[Word],
    ) -> Option<&ValueType> {
        let (here, at, refusal) = self.follow(names, line, words);
        if at < words.len() || refusal.is_some() {
            return None;
        }
        let (mut first, mut literals) = (None, Vec::new());
        self.candidates(here, &mut |candidate| {
            match candidate {
                Candidate::Child { word, .. } => literals.push(word),
                Candidate::Edge { edge, .. } => match &edge.take {
                    Take::Literal { word, .. } => literals.push(word),
                    Take::Value { value_type, .. } => {
                        let is_strict =
                            matches!(value_type.reads, Reads::Strict(_) | Reads::Number { .. });
                        if is_strict && first.is_none() {
                            first = Some(&**value_type);
                        }
                    }
                },
            }
            ControlFlow::Continue(())
        });
        first
            .filter(|value_type| literals.iter().all(|word| value_type.read(word, false).is_none()))
    }

    #[inline]
    fn advance<'a>(
        &self,
        names: &dyn Names,
        line: &'a str,
        words: &[Word],
        walk: &mut Walk<'a, '_>,
    ) -> Result<(), Refusal> {
        let Some(found) = self.find(names, line, words, walk) else {
            return Err(self.refuse(line, words, walk));
        };
        match found.candidate {
            Candidate::Child { node, .. } => walk.here = Here::Trie(node),
            Candidate::Edge { command, edge, mask } => {
                walk.groups(&edge.passage.groups)?;
                let word = walk.at as u16;
                match (&edge.take, found.value) {
                    (Take::Literal { word: text, record: Some(name) }, _) => {
                        walk.slots.push(Slot { value: Value::Word(text), name: *name, word });
                    }
                    (Take::Value { name, .. }, Some(value)) => {
                        walk.slots.push(Slot { value, name: *name, word });
                    }
                    _ => {}
                }
                walk.here =
                    Here::Inside { command, state: edge.target, mask: edge.passage.cross(mask) };
            }
        }
        walk.at = found.next;
        Ok(())
    }

    /// What the next word is.
    #[inline]
    fn find<'m, 'a>(
        &'m self,
        names: &dyn Names,
        line: &'a str,
        words: &[Word],
        walk: &Walk<'a, '_>,
    ) -> Option<Found<'m, 'a>> {
        let at = walk.at;
        let word = words[at];
        let text = word.text(line);
        let mut best = Best::default();
        let mut exact = None;
        self.candidates(walk.here, &mut |candidate| {
            let literal = match &candidate {
                Candidate::Child { word, .. } => *word,
                Candidate::Edge { edge, .. } => match &edge.take {
                    Take::Literal { word, .. } => *word,
                    Take::Value { value_type, .. } => {
                        best.value(candidate, value_type, line, words, at);
                        return ControlFlow::Continue(());
                    }
                },
            };
            if word.quoted {
                return ControlFlow::Continue(());
            }
            let is_shorthand = at == 0 && self.abbreviations && (text, literal) == SHORTHAND;
            if literal == text || is_shorthand {
                exact = Some(Found { candidate, value: None, next: at + 1 });
                return ControlFlow::Break(());
            }
            if self.abbreviations && literal.starts_with(text) {
                best.prefix(Found { candidate, value: None, next: at + 1 }, literal);
            }
            ControlFlow::Continue(())
        });
        exact.or_else(|| best.choose(names, text))
    }

    fn finish(&self, mut walk: Walk<'_, '_>) -> Result<u32, Refusal> {
        let found = match walk.here {
            Here::Trie(node) => self.trie[node as usize].commands.iter().find_map(|command| {
                let start = &self.automata[*command as usize].states[0];
                start.accept.iter().find(|p| p.is_open(0)).map(|p| (*command, p))
            }),
            Here::Inside { command, state, mask } => {
                let state = &self.automata[command as usize].states[state as usize];
                state.accept.iter().find(|p| p.is_open(mask)).map(|p| (command, p))
            }
        };
        match found {
            Some((command, passage)) => {
                walk.groups(&passage.groups)?;
                Ok(command)
            }
            None => {
                let expected = either(&self.expected(walk.here));
                Err(Refusal::new("the command ends too early")
                    .at_word(walk.at as u32 + 1, "")
                    .remedy(format!("expected {expected}"))
                    .quoting_nothing())
            }
        }
    }

    /// Could the command end here?
    pub(crate) fn can_end(&self, here: Here) -> bool {
        let mut slots = Vec::new();
        self.finish(Walk::new(here, &mut slots)).is_ok()
    }

    /// What could follow, in words.
    fn expected(&self, here: Here) -> Vec<String> {
        let mut out: Vec<String> = Vec::new();
        self.candidates(here, &mut |candidate| {
            let text = match &candidate {
                Candidate::Child { word, .. } => word.to_string(),
                Candidate::Edge { edge, .. } => match &edge.take {
                    Take::Literal { word, .. } => word.to_string(),
                    Take::Value { value_type, .. } => value_type.description.clone(),
                },
            };
            if !out.contains(&text) {
                out.push(text);
            }
            ControlFlow::Continue(())
        });
        if out.len() > CANDIDATES_LISTED_MAX {
            out.truncate(CANDIDATES_LISTED_MAX);
            out.push("others (try ?)".into());
        }
        out
    }

    #[cold]
    fn refuse(&self, line: &str, words: &[Word], walk: &Walk<'_, '_>) -> Refusal {
        let word = words[walk.at];
        let text = word.text(line);
        let (mut literals, mut used_up): (Vec<&str>, bool) = (Vec::new(), false);
        self.candidates(walk.here, &mut |candidate| {
            match &candidate {
                Candidate::Child { word, .. } => literals.push(word),
                Candidate::Edge { edge, .. } => literals.extend(literal_of(edge)),
            }
            ControlFlow::Continue(())
        });
        if let Here::Inside { command, state, mask } = walk.here {
            let edges = &self.automata[command as usize].states[state as usize].edges;
            used_up =
                edges.iter().any(|e| literal_of(e) == Some(text) && e.passage.is_used_up(mask));
        }
        let mut ambiguous: Vec<&str> =
            literals.iter().copied().filter(|l| l.starts_with(text)).collect();
        ambiguous.sort_unstable();
        ambiguous.dedup();
        let quoted = printable(text);
        let expected = self.expected(walk.here);
        let near = nearest(text, literals.iter().copied());
        let can_end = self.can_end(walk.here);
        let refusal = if used_up && words[..walk.at].iter().any(|before| before.text(line) == text)
        {
            Refusal::new(format!("'{quoted}' is given twice")).remedy("once is enough")
        } else if used_up {
            Refusal::new(format!("'{quoted}' does not go together with a word before it"))
                .remedy("leave one of them out")
        } else if self.abbreviations && ambiguous.len() > 1 && !word.quoted {
            Refusal::new(format!("'{quoted}' is ambiguous"))
                .remedy(format!("it could be {}", either(&ambiguous)))
        } else if expected.is_empty() {
            Refusal::new(format!("'{quoted}' is one word too many"))
                .remedy("the command ends before it")
        } else if !near.is_empty() {
            Refusal::new(format!("unknown word '{quoted}'"))
                .remedy(format!("did you mean {}?", either(&near)))
        } else if literals.is_empty() && !can_end {
            Refusal::new(format!("'{quoted}' does not fit here"))
                .remedy(format!("it must be {}", either(&expected)))
        } else if matches!(walk.here, Here::Trie(0)) {
            Refusal::new(format!("no command begins with '{quoted}'"))
                .remedy("`help` lists the commands")
        } else {
            let or_end = if can_end { ", or the end of the command" } else { "" };
            Refusal::new(format!("unknown word '{quoted}'"))
                .remedy(format!("expected {}{or_end}", either(&expected)))
        };
        let right = match walk.here {
            _ if expected.is_empty() => "the command ends before it".to_owned(),
            Here::Trie(0) => "`help` lists the commands".to_owned(),
            _ => format!("expected {}", either(&expected)),
        };
        refusal.at_word(walk.at as u32 + 1, text).or_unquoted("a word does not fit", right)
    }

    /// How each word is taken, as far as they fit; and whether what does not fit could be a secret.
    pub(crate) fn secrets(&self, names: &dyn Names, line: &str, words: &[Word]) -> Secrets {
        let mut slots = Vec::new();
        let mut walk = Walk::new(Here::Trie(0), &mut slots);
        let mut found = Secrets { places: Vec::new(), fitting: 0, rest_may_be: false };
        while walk.at < words.len().min(WORDS_MAX) {
            let at = walk.at;
            let is_secret =
                self.find(names, line, words, &walk).is_some_and(|found| match found.candidate {
                    Candidate::Edge {
                        edge: Edge { take: Take::Value { value_type, .. }, .. },
                        ..
                    } => value_type.is_secret(),
                    _ => false,
                });
            if self.advance(names, line, words, &mut walk).is_err() {
                break;
            }
            found.fitting = walk.at;
            found.places.extend((at..walk.at).filter(|_| is_secret));
        }
        let rest = words.get(found.fitting..).unwrap_or_default();
        found.rest_may_be = self.leads_to_secret(walk.here)
            || rest.iter().any(|word| self.announces_secret(word.text(line)));
        found
    }

    /// Does a secret follow this word in some command? Then it is likely to follow it in a command
    /// with a mistake.
    fn announces_secret(&self, text: &str) -> bool {
        let takes_secret = |states: &[State], target: u32| {
            states[target as usize].edges.iter().any(|edge| match &edge.take {
                Take::Value { value_type, .. } => value_type.is_secret(),
                Take::Literal { .. } => false,
            })
        };
        self.automata.iter().any(|automaton| {
            let edges = automaton.states.iter().flat_map(|state| &state.edges);
            edges
                .filter(|edge| literal_of(edge).is_some_and(|word| word.eq_ignore_ascii_case(text)))
                .any(|edge| takes_secret(&automaton.states, edge.target))
        })
    }

    /// Takes a command a secret that could be the one under way?
    fn leads_to_secret(&self, here: Here) -> bool {
        let takes = |command: u32| {
            let states = &self.automata[command as usize].states;
            states.iter().flat_map(|state| &state.edges).any(|edge| match &edge.take {
                Take::Value { value_type, .. } => value_type.is_secret(),
                Take::Literal { .. } => false,
            })
        };
        match here {
            Here::Inside { command, .. } => takes(command),
            Here::Trie(node) => {
                let node = &self.trie[node as usize];
                node.commands.iter().any(|command| takes(*command))
                    || node
                        .children
                        .iter()
                        .any(|(_, child)| self.leads_to_secret(Here::Trie(*child)))
            }
        }
    }
}

/// Which words of a line are secrets.
pub(crate) struct Secrets {
    /// Their numbers, from 0.
    pub(crate) places: Vec<usize>,
    /// So many words fit the grammar.
    pub(crate) fitting: usize,
    /// Words behind those could be secrets.
    pub(crate) rest_may_be: bool,
}

fn literal_of(edge: &Edge) -> Option<&'static str> {
    match &edge.take {
        Take::Literal { word, .. } => Some(word),
        Take::Value { .. } => None,
    }
}

impl<'m, 'a> Best<'m, 'a> {
    fn prefix(&mut self, found: Found<'m, 'a>, literal: &'static str) {
        match &self.prefix {
            None => self.prefix = Some((found, literal)),
            Some((_, first)) => self.prefix_again |= *first != literal,
        }
    }

    #[inline]
    fn value(
        &mut self,
        candidate: Candidate<'m>,
        value_type: &ValueType,
        line: &'a str,
        words: &[Word],
        at: usize,
    ) {
        if self.strict.is_some() || (value_type.is_loose() && self.loose.is_some()) {
            return;
        }
        let Some((value, next)) = read(value_type, line, words, at) else { return };
        let found = Found { candidate, value: Some(value), next };
        match value_type.reads {
            Reads::Name(kind) => self.loose = Some((found, Some(kind))),
            Reads::Text | Reads::Rest => self.loose = Some((found, None)),
            _ => self.strict = Some(found),
        }
    }

    fn choose(self, names: &dyn Names, text: &str) -> Option<Found<'m, 'a>> {
        if self.strict.is_some() {
            return self.strict;
        }
        match (self.loose, self.prefix) {
            (None, None) => None,
            (Some((found, _)), None) => Some(found),
            (None, Some((found, _))) => (!self.prefix_again).then_some(found),
            (Some((loose, kind)), Some((prefix, _))) => {
                let exists = kind.is_some_and(|kind| names.find(kind, text).is_some());
                Some(if exists || self.prefix_again { loose } else { prefix })
            }
        }
    }
}

/// Read a value that begins at word `at`; also says which word comes after it.
#[inline]
fn read<'a>(
    value_type: &ValueType,
    line: &'a str,
    words: &[Word],
    at: usize,
) -> Option<(Value<'a>, usize)> {
    let word = words[at];
    match value_type.reads {
        Reads::Block => {
            if word.quoted || word.text(line) != "{" {
                return None;
            }
            let mut open = 0;
            for (index, word) in words.iter().enumerate().skip(at) {
                match word.text(line) {
                    "{" if !word.quoted => open += 1,
                    "}" if !word.quoted => open -= 1,
                    _ => {}
                }
                if open == 0 {
                    let start = words[at].start as usize;
                    return Some((Value::Text(&line[start..word.end as usize]), index + 1));
                }
            }
            None
        }
        Reads::Rest => {
            let last = words.last()?;
            let start = word.start as usize - usize::from(word.quoted);
            let end = last.end as usize + usize::from(last.quoted);
            Some((Value::Text(&line[start..end]), words.len()))
        }
        _ => Some((value_type.read(word.text(line), word.quoted)?, at + 1)),
    }
}

/// A match under way.
struct Walk<'a, 's> {
    here: Here,
    at: usize,
    slots: &'s mut Vec<Slot<'a>>,
    open: [usize; GROUP_DEPTH_MAX],
    depth: usize,
}

impl<'a, 's> Walk<'a, 's> {
    fn new(here: Here, slots: &'s mut Vec<Slot<'a>>) -> Walk<'a, 's> {
        Walk { here, at: 0, slots, open: [0; GROUP_DEPTH_MAX], depth: 0 }
    }

    #[inline]
    fn groups(&mut self, steps: &[GroupStep]) -> Result<(), Refusal> {
        for step in steps {
            match step {
                GroupStep::Open(name) => {
                    if self.depth == GROUP_DEPTH_MAX {
                        return Err(Refusal::new("groups are nested too deep"));
                    }
                    self.open[self.depth] = self.slots.len();
                    self.depth += 1;
                    self.slots.push(Slot {
                        value: Value::Group(0),
                        name: *name,
                        word: self.at as u16,
                    });
                }
                GroupStep::Close => {
                    // `can_end` asks without having opened what it would close.
                    let Some(depth) = self.depth.checked_sub(1) else { continue };
                    let first = self.open[depth];
                    self.depth = depth;
                    self.slots[first].value = Value::Group((self.slots.len() - first - 1) as u32);
                }
            }
        }
        Ok(())
    }
}
