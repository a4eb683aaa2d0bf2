//! Lines made from the declarations: what the reference page shows, and what a test parses to see
//! that every declaration can be used.

use crate::automaton;
use crate::error::Refusal;
use crate::grammar::Commands;
use crate::inverse::Given;
use crate::matcher::Matcher;
use crate::names::Names;
use crate::syntax::{Choice, Node};

impl<S: Names + 'static> Commands<S> {
    /// For each form of each command its shortest line, and its longest for each way through its
    /// alternatives.
    pub fn samples(&self) -> Vec<String> {
        let mut out = Vec::new();
        for form in &self.forms {
            out.push(sample(&form.tree, 0, false));
            for branch in 0..branches(&form.tree) {
                out.push(sample(&form.tree, branch, true));
            }
        }
        out
    }

    /// Every declared example.
    pub fn examples(&self) -> Vec<String> {
        let examples = self.commands.iter().flat_map(|command| &command.examples);
        examples.map(|line| line.to_string()).collect()
    }

    /// Parse every sample and every declared example, each abbreviated as far as it goes, and what
    /// takes it back.
    /// The error names the first that fails: a fault in a declaration, for tests to find.
    ///
    /// # Errors
    /// A sample or an example does not parse, or parses as another command.
    pub fn check(&self) -> Result<(), Refusal> {
        let examples =
            self.commands.iter().flat_map(|command| &command.examples).map(|line| line.to_string());
        for line in self.samples().into_iter().chain(examples) {
            let (mut words, mut slots) = (Vec::new(), Vec::new());
            let failed =
                |refusal: Refusal| Refusal::new(format!("'{line}' does not parse: {refusal}"));
            let form = self.parse_words(&(), &line, &mut words, &mut slots).map_err(failed)?;
            let names = &self.matcher.automata[form].names;
            let given = Given { names, slots: &slots, line: &line, words: &words, instead: &[] };
            let inverse = &self.registered(form).inverse;
            if let Some(undo) = inverse.undo.iter().find_map(|template| template.fill(&given)) {
                let (mut words, mut slots) = (Vec::new(), Vec::new());
                let parsed = self.parse_words(&(), &undo, &mut words, &mut slots);
                parsed.map_err(|refusal| {
                    Refusal::new(format!("'{undo}', which takes back '{line}': {refusal}"))
                })?;
            }
            let short = self.abbreviated(form, &line);
            let (mut words, mut slots) = (Vec::new(), Vec::new());
            let again = self.parse_words(&(), &short, &mut words, &mut slots).map_err(failed)?;
            if again != form {
                return Err(Refusal::new(format!("'{short}' is not '{line}'")));
            }
        }
        Ok(())
    }

    /// The line with the words that its command begins with cut to what is still unique.
    fn abbreviated(&self, form: usize, line: &str) -> String {
        let mut node = 0;
        let mut out = Vec::new();
        let mut words = line.split(' ');
        for _ in &self.forms[form].words {
            let trie = &self.matcher.trie[node];
            let Some(typed) = words.next() else { break };
            let mut known: Vec<&str> = trie.children.iter().map(|(known, _)| *known).collect();
            for command in &trie.commands {
                known.extend(first_literals(&self.matcher, *command));
            }
            let fits = |length: usize| {
                known.iter().filter(|k| k.starts_with(&typed[..length])).count() == 1
            };
            let length =
                (1..=typed.len()).find(|length| typed.is_char_boundary(*length) && fits(*length));
            let Some((_, child)) = trie.children.iter().find(|(k, _)| k.starts_with(typed)) else {
                break;
            };
            let exact =
                trie.children.iter().find(|(known, _)| *known == typed).map_or(*child, |(_, c)| *c);
            out.push(&typed[..length.unwrap_or(typed.len())]);
            node = exact as usize;
        }
        out.extend(words);
        out.join(" ")
    }
}

fn first_literals(matcher: &Matcher, command: u32) -> Vec<&'static str> {
    let edges = &matcher.automata[command as usize].states[0].edges;
    edges
        .iter()
        .filter_map(|edge| match edge.take {
            automaton::Take::Literal { word, .. } => Some(word),
            automaton::Take::Value { .. } => None,
        })
        .collect()
}

/// How many ways there are through the widest alternative.
fn branches(node: &Node) -> usize {
    match node {
        Node::Literal { .. } => 1,
        Node::Value { choices, .. } => choices.len(),
        Node::Opt(inner) | Node::Repeat { inner, .. } => branches(inner),
        Node::Seq(items) | Node::Set(items) => items.iter().map(branches).max().unwrap_or(1),
        Node::Alt(items) => items.len().max(items.iter().map(branches).max().unwrap_or(1)),
    }
}

/// A line: the `branch`-th way through each alternative, with all options or with none.
pub(crate) fn sample(node: &Node, branch: usize, full: bool) -> String {
    let mut out = Vec::new();
    write(node, branch, full, &mut out);
    out.join(" ")
}

fn write(node: &Node, branch: usize, full: bool, out: &mut Vec<String>) {
    match node {
        Node::Literal { word, .. } => out.push(word.to_string()),
        Node::Value { choices, .. } => match &choices[branch % choices.len()] {
            Choice::Word(word) => out.push(word.to_string()),
            Choice::Type(t) => out.push(t.example.clone()),
        },
        Node::Seq(items) | Node::Set(items) => {
            items.iter().for_each(|item| write(item, branch, full, out))
        }
        Node::Opt(inner) => {
            if full {
                write(inner, branch, full, out);
            }
        }
        Node::Alt(items) => write(&items[branch % items.len()], branch, full, out),
        Node::Repeat { inner, .. } => {
            write(inner, branch, full, out);
            if full {
                write(inner, branch, full, out);
            }
        }
    }
}
