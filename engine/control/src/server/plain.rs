//! The plain socket: command lines in, text out, as `socat - UNIX-CONNECT:cli.sock` speaks it.
//!
//! Lines are executed as they come; a refused one is answered by `error: …` and the next goes on.
//! There is no prompt, unless the session asks for one by the line `interactive`. `history` lists
//! what the session said, and `quit` ends it.

use std::collections::VecDeque;
use std::str;

use super::Answer;
use crate::error::Refusal;
use crate::words::LineEnds;

/// Says that the router waits for a command.
pub(crate) const PROMPT: &str = "quiver# ";

/// Bytes of commands that the control thread gets at once; one command may be longer.
const PIECE_BYTES: usize = 64 * 1024;

/// Commands that a session remembers.
pub(crate) const HISTORY_LINES_MAX: usize = 256;

/// Bytes of a command that a session remembers.
const HISTORY_LINE_BYTES_MAX: usize = 512;

/// What the input holds next.
#[derive(Debug, PartialEq)]
pub(crate) enum Next {
    /// Not a whole command yet.
    Wait,
    /// Whole commands.
    Lines(String),
    /// The session wants to see what it said, each command with its number.
    History(Vec<String>),
    /// The session is to end.
    Quit,
    /// The session is to show a prompt.
    Interactive,
}

/// What a client has written and nobody has executed. Each byte is looked at a fixed number of
/// times, whatever the client writes and in whatever pieces.
#[derive(Debug, Default)]
pub(crate) struct PlainInput {
    /// Text that was checked.
    text: String,
    /// The text up to here is dealt with.
    at: usize,
    /// A character that is cut in the middle, at the end of the text.
    cut: Vec<u8>,
    ends: LineEnds,
    is_faulty: bool,
    /// As they were said; the control thread, which knows the grammar, takes the secrets out.
    history: VecDeque<String>,
}

impl PlainInput {
    /// Bytes that wait.
    pub(crate) fn len(&self) -> usize {
        self.text.len() - self.at + self.cut.len()
    }

    /// Take what a client wrote.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        if self.at > self.text.len() / 2 {
            self.text.drain(..self.at);
            self.at = 0;
        }
        let joined = [self.cut.as_slice(), bytes].concat();
        let valid = match str::from_utf8(&joined) {
            Ok(text) => text,
            Err(error) => {
                self.is_faulty |= error.error_len().is_some();
                str::from_utf8(&joined[..error.valid_up_to()]).unwrap_or_default()
            }
        };
        self.is_faulty |=
            valid.contains(|c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\t'));
        self.text.push_str(valid);
        self.cut = joined[valid.len()..].to_vec();
    }

    /// Find what comes next. `ended`: nothing follows; `full`: there is no room for more.
    pub(crate) fn next(&mut self, ended: bool, full: bool) -> Result<Next, Refusal> {
        if self.is_faulty || (ended && !self.cut.is_empty()) {
            return Err(not_text());
        }
        let mut length = 0;
        while length < PIECE_BYTES {
            let rest = &self.text[self.at + length..];
            let Some(line) = self.ends.next(rest, ended) else { break };
            let special = special(rest[..line].trim());
            if special.is_some() && length > 0 {
                break; // what stands before it comes first
            }
            remember(&mut self.history, rest[..line].trim());
            if let Some(special) = special {
                self.at += line;
                return Ok(match special {
                    Next::History(_) => Next::History(self.history.iter().cloned().collect()),
                    other => other,
                });
            }
            length += line;
        }
        let from = self.at;
        self.at += length;
        match length {
            0 if full => {
                Err(Refusal::new(format!("the command is longer than {} bytes", self.len())))
            }
            0 => Ok(Next::Wait),
            _ => Ok(Next::Lines(self.text[from..self.at].to_owned())),
        }
    }
}

/// A line that is for the session, not for the router.
fn special(line: &str) -> Option<Next> {
    match line {
        "quit" | "exit" | "q" => Some(Next::Quit),
        "interactive" => Some(Next::Interactive),
        "history" => Some(Next::History(Vec::new())),
        _ => None,
    }
}

fn remember(history: &mut VecDeque<String>, line: &str) {
    if line.is_empty() {
        return;
    }
    if history.len() == HISTORY_LINES_MAX {
        history.pop_front();
    }
    history.push_back(line.chars().take(HISTORY_LINE_BYTES_MAX).collect());
}

fn not_text() -> Refusal {
    Refusal::new("the input is not text in UTF-8").remedy("send command lines")
}

/// What the client reads of an answer.
pub(crate) fn text_of(answer: &Answer) -> String {
    match answer {
        Answer::Part { output, .. } | Answer::Done(Ok(output)) => output.as_printed(),
        Answer::Refused(refusal) | Answer::Done(Err(refusal)) => error_text(refusal),
        Answer::Progress(_) => String::new(),
    }
}

pub(crate) fn error_text(refusal: &Refusal) -> String {
    format!("error: {refusal}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(bytes: &[u8]) -> PlainInput {
        let mut input = PlainInput::default();
        input.push(bytes);
        input
    }

    fn next(bytes: &[u8], ended: bool, full: bool) -> Result<Next, Refusal> {
        input(bytes).next(ended, full)
    }

    #[test]
    fn whole_commands_are_taken_and_the_rest_waits() {
        assert_eq!(next(b"sh", false, false).unwrap(), Next::Wait);
        let mut taken = input(b"a\nb {\n}\nc {\n");
        assert_eq!(taken.next(false, false).unwrap(), Next::Lines("a\nb {\n}\n".into()));
        assert_eq!((taken.next(false, false).unwrap(), taken.len()), (Next::Wait, 4));
        taken.push(b"}\n");
        assert_eq!(taken.next(false, false).unwrap(), Next::Lines("c {\n}\n".into()));
        assert_eq!(next(b"a", true, false).unwrap(), Next::Lines("a".into()));
        let mut quits = input(b"a\n quit \r\nb\n");
        assert_eq!(quits.next(false, false).unwrap(), Next::Lines("a\n".into()));
        assert_eq!((quits.next(false, false).unwrap(), quits.len()), (Next::Quit, 2));
    }

    #[test]
    fn a_session_lists_what_it_said() {
        let mut said = input(b"show run\nset x {\n}\nhistory\n");
        assert!(matches!(said.next(false, false).unwrap(), Next::Lines(_)));
        let listed = ["show run", "set x {\n}", "history"].map(String::from).to_vec();
        assert_eq!(said.next(false, false).unwrap(), Next::History(listed));
    }

    #[test]
    fn no_bytes_make_the_parser_of_lines_panic_and_all_text_is_taken_once() {
        bolero::check!().with_type::<(Vec<u8>, usize)>().for_each(|(bytes, cut)| {
            let (mut input, mut taken) = (PlainInput::default(), String::new());
            let (first, second) = bytes.split_at(cut % (bytes.len() + 1));
            for (piece, ended) in [(first, false), (second, true)] {
                input.push(piece);
                loop {
                    match input.next(ended, false) {
                        Ok(Next::Lines(text)) => taken += &text,
                        Ok(Next::Wait) => break,
                        Ok(Next::Quit | Next::Interactive | Next::History(_)) => return,
                        Err(_) => return,
                    }
                }
            }
            assert_eq!(taken.as_bytes(), &bytes[..]);
        });
    }

    #[test]
    fn what_is_not_text_is_refused_and_a_cut_character_is_not() {
        assert!(next(b"\xff\xfd\x01\n", false, false).is_err());
        assert!(next(b"a\0b\n", false, false).is_err());
        let mut cut = input("a\né".as_bytes().split_last().unwrap().1);
        assert_eq!(cut.next(false, false).unwrap(), Next::Lines("a\n".into()));
        cut.push(b"\xa9\n");
        assert_eq!(cut.next(false, false).unwrap(), Next::Lines("é\n".into()));
        assert!(next(b"endless", false, true).is_err());
        assert!(next(b"cut \xc3", true, false).is_err());
    }
}
