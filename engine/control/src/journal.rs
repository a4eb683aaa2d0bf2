//! Who changed what: every command of a client that changes something, and every one that is
//! refused.

use std::cell::RefCell;

use crate::error::Refusal;
use crate::filter::pipe_of;
use crate::grammar::Commands;
use crate::names::Names;
use crate::running::HIDDEN;
use crate::words;

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

    /// The same, without a copy.
    pub(crate) fn with_who<R>(&self, look: impl FnOnce(Option<&str>) -> R) -> R {
        look(self.who.borrow().as_deref())
    }

    /// On whose behalf commands are executed.
    pub(crate) fn who(&self) -> Option<String> {
        self.who.borrow().clone()
    }

    /// Keep an entry; `line` is made only where somebody keeps it.
    fn note(&self, line: impl FnOnce() -> String, more: usize, refusal: Option<&Refusal>) {
        if let (Some(keep), Some(who)) = (&self.keep, self.who.borrow().as_deref()) {
            keep(&Entry { who, line: line(), more, refusal });
        }
    }
}

impl<S: Names + 'static> Commands<S> {
    /// Keep a command that was done, with so many more of its kind.
    pub(crate) fn note_done(&self, names: &dyn Names, line: &str, more: usize) {
        self.journal.note(|| self.masked(names, line), more, None);
    }

    /// Keep a command that was refused. One that does not fit the grammar is not repeated.
    pub(crate) fn note_refused(
        &self,
        names: &dyn Names,
        line: &str,
        refusal: &Refusal,
        is_command: bool,
    ) {
        match is_command {
            true => self.journal.note(|| self.masked(names, line), 0, Some(refusal)),
            false => {
                self.journal.note(
                    || self.masked(names, line),
                    0,
                    Some(&refusal.clone().unquoted()),
                );
            }
        }
    }

    /// Keep that a line of a file does not fit the grammar, without a word of it.
    pub(crate) fn note_no_command(&self, file: &str, line: u32, refusal: &Refusal) {
        self.journal.note(
            || format!("line {line} of {file}"),
            0,
            Some(&refusal.clone().unquoted()),
        );
    }

    /// Could a word of this line be a secret? Also one that does not fit the grammar.
    pub(crate) fn has_secret(&self, names: &dyn Names, line: &str) -> bool {
        let mut split = Vec::new();
        if words::split(line, &mut split).is_err() {
            return true;
        }
        let secrets = self.matcher.secrets(names, line, &split);
        !secrets.places.is_empty() || secrets.fitting < split.len() && secrets.rest_may_be
    }

    /// The command in one line, short, and with `<hidden>` for secrets. What does not fit the
    /// grammar is left out when it could be a secret.
    pub(crate) fn masked(&self, names: &dyn Names, line: &str) -> String {
        self.masked_within(names, line, LINE_CHARS_MAX)
    }

    /// The same, of so many characters.
    pub(crate) fn masked_within(&self, names: &dyn Names, line: &str, chars_max: usize) -> String {
        let mut split = Vec::new();
        let is_whole = words::split(line, &mut split).is_ok();
        let command = &split[..pipe_of(line, &split).unwrap_or(split.len())];
        let secrets = self.matcher.secrets(names, line, command);
        let is_cut = !is_whole || secrets.fitting < command.len();
        let shown = if is_cut && secrets.rest_may_be { secrets.fitting } else { split.len() };
        let mut out = String::new();
        for (at, word) in split[..shown].iter().enumerate() {
            if out.chars().count() > chars_max {
                out.push_str(" …");
                return out;
            }
            out.push_str(if at > 0 { " " } else { "" });
            if secrets.places.contains(&at) {
                out.push_str(HIDDEN);
                continue;
            }
            let clean =
                word.text(line).chars().map(|c| if c.is_control() { '\u{fffd}' } else { c });
            let mark = if word.quoted { "\"" } else { "" };
            out.push_str(mark);
            out.extend(clean.take(chars_max));
            out.push_str(mark);
        }
        if shown < split.len() {
            out.push_str(if shown > 0 { " " } else { "" });
            out.push_str(HIDDEN);
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Command, Output};

    struct Nothing;
    impl Names for Nothing {}

    fn masked(line: &str) -> String {
        let mut commands = Commands::<Nothing>::new();
        for syntax in [
            "sr hmac key <id:u32> algo (sha1|sha256) secret <secret:secret> [linux]",
            "create memif {id <:u32> [secret <shared:secret>] master|slave}",
            "set mode <mode:word>",
            "new <data:block>",
        ] {
            commands.add(Command::new(syntax).help("").run(|_, _| Ok(Output::none())));
        }
        commands.masked(&(), line)
    }

    #[test]
    fn a_command_is_kept_in_one_line_without_its_secret() {
        assert_eq!(
            masked("sr hmac key 1 algo sha256 secret abc"),
            "sr hmac key 1 algo sha256 secret <hidden>"
        );
        assert_eq!(masked("cre me id 0 sec abc master"), "cre me id 0 sec <hidden> master");
        assert_eq!(
            masked("create memif secret \"two words\" id 0"),
            "create memif secret <hidden> id 0"
        );
        assert_eq!(masked("new {\n name x\n}"), "new { name x }");
        assert!(masked(&format!("echo {}", "word ".repeat(100))).ends_with('…'));
        assert!(!masked("set mode \u{1b}[31m").contains('\u{1b}'));
        assert_eq!(masked("show running-config | count"), "show running-config | count");
    }

    #[test]
    fn of_a_line_that_does_not_fit_nothing_is_kept_that_could_be_a_secret() {
        assert_eq!(masked("sr hmac key 1 algo sha257 secret abc"), "sr hmac key 1 algo <hidden>");
        assert_eq!(
            masked("sr hmac key 1 algo sha256 secret abc def"),
            "sr hmac key 1 algo sha256 secret <hidden> <hidden>"
        );
        assert_eq!(
            masked("sr hmac key 1 algo sha256 secret \"abc"),
            "sr hmac key 1 algo sha256 secret <hidden>"
        );
        assert_eq!(masked("sr hamc key 1 algo sha256 secret abc"), "sr <hidden>");
        assert_eq!(masked("correct-horse"), "<hidden>");
        assert_eq!(masked("set mode up down"), "set mode up down", "no secret can follow");
        assert_eq!(
            masked("set mode up secret abc"),
            "set mode up <hidden>",
            "another command's word for it"
        );
        assert_eq!(masked("set hmac 7 Secret abc"), "set <hidden>");
    }
}
