//! Who changed what: every command of a client that changes something, and every one that is refused.

use std::cell::RefCell;

use crate::error::Refusal;

/// Characters of a command that the journal keeps.
const LINE_CHARS_MAX: usize = 200;

/// What a client did or tried.
#[derive(Debug)]
pub struct Entry<'a> {
    /// Who, as the server knows the client.
    pub who: &'a str,
    /// The command, in one line, without secrets.
    pub line: String,
    /// How many more of the same kind were done with it.
    pub more: usize,
    /// Why it was refused, if it was.
    pub refusal: Option<&'a Refusal>,
}

type Keep = Box<dyn Fn(&Entry<'_>)>;

/// Where entries go, and on whose behalf commands are executed at the moment.
#[derive(Default)]
pub(crate) struct Journal {
    keep: Option<Keep>,
    who: RefCell<Option<String>>,
}

impl Journal {
    pub(crate) fn set(&mut self, keep: Keep) {
        self.keep = Some(keep);
    }

    /// From here on commands are this client's; nobody's are not kept.
    pub(crate) fn speaks(&self, who: Option<&str>) {
        let mut current = self.who.borrow_mut();
        if current.as_deref() != who {
            *current = who.map(str::to_owned);
        }
    }

    /// Keep a command that was done, with so many more of its kind, or was refused.
    pub(crate) fn note(&self, line: &str, more: usize, refusal: Option<&Refusal>) {
        if let (Some(keep), Some(who)) = (&self.keep, self.who.borrow().as_deref()) {
            keep(&Entry { who, line: one_line(line), more, refusal });
        }
    }
}

/// The command in one line, short, and with `***` for what follows the word `secret`.
fn one_line(line: &str) -> String {
    let mut out = String::new();
    let mut hide = false;
    for word in line.split_whitespace() {
        if out.chars().count() > LINE_CHARS_MAX {
            out.push_str(" …");
            break;
        }
        if !out.is_empty() {
            out.push(' ');
        }
        let shown = word.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c });
        match hide {
            true => out.push_str("***"),
            false => out.extend(shown.take(LINE_CHARS_MAX)),
        }
        // Also abbreviated, and for all words of a text in quotation marks.
        let begins = hide && word.starts_with('"') && !(word.len() > 1 && word.ends_with('"'));
        let goes_on = hide && !word.ends_with('"') && out.contains("***") && line.contains('"');
        hide = (word.len() >= 2 && "secret".starts_with(word)) || begins || goes_on;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_kept_in_one_line_without_its_secret() {
        assert_eq!(one_line("sr hmac key 1 algo sha256 secret abc"), "sr hmac key 1 algo sha256 secret ***");
        assert_eq!(
            one_line("create interface memif id 0 sec abc master"),
            "create interface memif id 0 sec *** master"
        );
        assert!(!one_line("x secret \"two words of it\" master").contains("words"));
        assert_eq!(one_line("new {\n name x\n}"), "new { name x }");
        assert!(one_line(&"word ".repeat(100)).ends_with('…'));
        assert!(!one_line("set \u{1b}[31m").contains('\u{1b}'));
    }
}
