//! The reference pages, made from the declarations: `docs/reference/cli.md` and `startup.md`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::grammar::{Commands, Form};
use crate::names::Names;
use crate::startup::StartupSchema;

/// Where commands without a chapter go.
const OTHER: &str = "Other";

impl<S: Names + 'static> Commands<S> {
    /// The page of all commands, in Markdown.
    pub fn reference(&self) -> String {
        let mut page = String::from(
            "# Commands\n\nMade from the declarations of the commands; do not edit. Words may be \
             cut to a unique prefix. `[ ]` may be left out, `|` means one of these, `...` once or \
             more, `< >` is yours to fill in; options after the first words come in any order \
             where the page says so. Every `show` takes a trailing `json`.\n",
        );
        let mut chapters: BTreeMap<&str, Vec<&Form>> = BTreeMap::new();
        for form in self.forms.iter().filter(|form| !form.is_alias) {
            let group = self.commands[form.command].group;
            chapters.entry(if group.is_empty() { OTHER } else { group }).or_default().push(form);
        }
        for (chapter, mut forms) in chapters {
            let _ = write!(page, "\n## {chapter}\n");
            forms.sort_by(|a, b| a.name.cmp(&b.name));
            for form in forms {
                self.command_page(form, &mut page);
            }
        }
        page
    }

    fn command_page(&self, form: &Form, page: &mut String) {
        let command = &self.commands[form.command];
        let _ = write!(page, "\n### {}\n\n{}.", form.name, command.help);
        if !command.details.is_empty() {
            let _ = write!(page, " {}", command.details);
        }
        let _ = write!(page, "\n\n```\n{}\n", form.tree.usage());
        let others =
            self.forms.iter().filter(|other| other.command == form.command && other.is_alias);
        for other in others {
            let _ = writeln!(page, "{}", other.tree.usage());
        }
        page.push_str("```\n");
        if has_set(&form.tree) {
            page.push_str("\nThe options come in any order.\n");
        }
        let described = self.described(form);
        if !described.is_empty() {
            page.push_str("\n| word | is |\n| --- | --- |\n");
            for (word, help) in described {
                let _ = writeln!(page, "| `{}` | {} |", cell(&word), cell(&help));
            }
        }
        if !command.examples.is_empty() {
            let _ = write!(page, "\n```\n{}\n```\n", command.examples.join("\n"));
        }
    }
}

fn has_set(node: &crate::syntax::Node) -> bool {
    let mut found = false;
    node.walk(&mut |node| {
        if let crate::syntax::Node::Set(members) = node {
            found |= members.len() > 1;
        }
    });
    found
}

/// Text in a cell of a Markdown table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

impl StartupSchema {
    /// The page of the start-up file, in Markdown.
    pub fn reference(&self) -> String {
        let mut page = String::from(
            "# Start-up file\n\nMade from the declarations of the sections; do not edit. Sections \
             are in braces, a word that begins with `#` begins a comment, entries come in any \
             order. An unknown word is an error that names the file and the line.\n",
        );
        for (section, entries) in self.declared() {
            let _ = write!(page, "\n## {}\n\n{}.\n\n", section.name, section.help);
            if let Some(why) = section.does_nothing {
                let _ = write!(page, "Known from VPP; it does nothing here: {why}.\n\n");
            }
            if entries.is_empty() {
                continue;
            }
            page.push_str("| entry | is |\n| --- | --- |\n");
            for (tree, (_, help)) in entries.iter().zip(&section.entries) {
                let _ = writeln!(page, "| `{}` | {} |", cell(&tree.usage()), cell(help));
            }
        }
        page
    }
}
