//! The plain socket: command lines in, text out, as `socat - UNIX-CONNECT:cli.sock` speaks it.
//!
//! Lines are executed as they come; a refused one is answered by `error: …` and the next goes on.
//! There is no prompt, unless the session asks for one by the line `interactive`. `quit` ends it.

use super::Answer;
use crate::error::Refusal;
use crate::words;

/// Says that the router waits for a command.
pub(crate) const PROMPT: &str = "quiver# ";

/// What the input holds next.
#[derive(Debug, PartialEq)]
pub(crate) enum Next {
    /// Not a whole command yet.
    Wait,
    /// Whole commands, and how many bytes they were.
    Lines { length: usize, text: String },
    /// The session is to end.
    Quit { length: usize },
    /// The session is to show a prompt.
    Interactive { length: usize },
}

/// Find what comes next in `input`. `ended`: nothing follows it; `full`: there is no room for more.
pub(crate) fn next(input: &[u8], ended: bool, full: bool) -> Result<Next, Refusal> {
    let text = match std::str::from_utf8(input) {
        Ok(text) => text,
        // A character may be cut in the middle.
        Err(error) if error.error_len().is_none() && !ended => {
            std::str::from_utf8(&input[..error.valid_up_to()]).unwrap_or_default()
        }
        Err(_) => return Err(not_text()),
    };
    if text.contains(|c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\t')) {
        return Err(not_text());
    }
    let mut length = 0;
    let mut words = Vec::new();
    while let Some((line, _)) = words::logical_line(&text[length..], &mut words, ended) {
        let special = match text[length..length + line].trim() {
            "quit" | "exit" => Some(Next::Quit { length: line }),
            "interactive" => Some(Next::Interactive { length: line }),
            _ => None,
        };
        if let Some(special) = special {
            // What stands before it comes first.
            return Ok(if length == 0 { special } else { lines(text, length) });
        }
        length += line;
    }
    match length {
        0 if full => Err(Refusal::new(format!("the command is longer than {} bytes", input.len()))),
        0 => Ok(Next::Wait),
        length => Ok(lines(text, length)),
    }
}

fn lines(text: &str, length: usize) -> Next {
    Next::Lines { length, text: text[..length].to_string() }
}

fn not_text() -> Refusal {
    Refusal::new("the input is not text in UTF-8").remedy("send command lines")
}

/// What the client reads of an answer.
pub(crate) fn text_of(answer: &Answer) -> String {
    match answer {
        Answer::Part(output) | Answer::Done(Ok(output)) => output.to_text(),
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

    #[test]
    fn whole_commands_are_taken_and_the_rest_waits() {
        assert_eq!(next(b"sh", false, false).unwrap(), Next::Wait);
        let taken = next(b"a\nb {\n}\nc {\n", false, false).unwrap();
        assert_eq!(taken, Next::Lines { length: 8, text: "a\nb {\n}\n".into() });
        assert_eq!(next(b"a", true, false).unwrap(), Next::Lines { length: 1, text: "a".into() });
        assert_eq!(
            next(b"a\nquit\nb\n", false, false).unwrap(),
            Next::Lines { length: 2, text: "a\n".into() }
        );
        assert_eq!(next(b" quit \r\nb\n", false, false).unwrap(), Next::Quit { length: 8 });
    }

    #[test]
    fn no_bytes_make_the_parser_of_lines_panic_and_what_it_takes_is_there() {
        bolero::check!().for_each(|bytes: &[u8]| {
            for (ended, full) in [(false, false), (true, false), (false, true)] {
                match next(bytes, ended, full) {
                    Ok(Next::Lines { length, text }) => assert_eq!(&bytes[..length], text.as_bytes()),
                    Ok(Next::Quit { length } | Next::Interactive { length }) => {
                        assert!(length <= bytes.len())
                    }
                    Ok(Next::Wait) => assert!(!full),
                    Err(_) => {}
                }
            }
        });
    }

    #[test]
    fn what_is_not_text_is_refused_and_a_cut_character_is_not() {
        assert!(next(b"\xff\xfd\x01\n", false, false).is_err());
        assert!(next(b"a\0b\n", false, false).is_err());
        assert_eq!(
            next("a\né".as_bytes().split_last().unwrap().1, false, false).unwrap(),
            Next::Lines { length: 2, text: "a\n".into() }
        );
        assert!(next(b"endless", false, true).is_err());
    }
}
