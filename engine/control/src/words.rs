//! Splitting text into words, the same for command lines and the start-up file.

use crate::error::Refusal;

/// A word of the text, by place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word {
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
    /// Was between quotation marks (which `start..end` leaves out).
    pub quoted: bool,
}

impl Word {
    /// The word's text.
    #[inline]
    pub fn text<'a>(&self, line: &'a str) -> &'a str {
        &line[self.start as usize..self.end as usize]
    }
}

/// Longest text that can be split: places are 32-bit numbers.
pub const TEXT_BYTES_MAX: usize = 1 << 30;

/// Longest command, with the lines it goes on in.
pub const COMMAND_BYTES_MAX: usize = 1 << 20;

/// A command of more words than this is refused.
pub const WORDS_MAX: usize = 8192;

/// How deep braces may nest.
pub const BRACES_MAX: u32 = 16;

/// What the end of the text found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Everything that was opened is closed.
    Complete,
    /// So many braces are still open: the command goes on in the next line.
    Open(u32),
}

/// Split `text` into words: separated by white space; `{` and `}` always, and a comma at the end of
/// a word, are words of their own; `"…"` holds white space together; a word that begins with `#`
/// begins a comment that ends with the line. The words are appended to `words`.
///
/// # Errors
/// The text is too long, a quotation mark is not closed, or braces do not match.
pub fn split(text: &str, words: &mut Vec<Word>) -> Result<End, Refusal> {
    if text.len() > TEXT_BYTES_MAX {
        return Err(Refusal::new("the text is longer than 1 GiB"));
    }
    let first = words.len();
    Ok(match split_on(text, 0, 0, words, first)? {
        0 => End::Complete,
        open => End::Open(open),
    })
}

/// Go on splitting `text` from byte `at`, a line's beginning, with `open` braces open. The text's
/// first word is `words[first]`. Returns how many braces are open at the end.
fn split_on(
    text: &str,
    mut at: usize,
    mut open: u32,
    words: &mut Vec<Word>,
    first: usize,
) -> Result<u32, Refusal> {
    let bytes = text.as_bytes();
    while at < bytes.len() {
        let start = at;
        match bytes[at] {
            byte if byte.is_ascii_whitespace() => at += 1,
            b'#' => at = line_end(bytes, at),
            b'"' => {
                at += 1;
                let length = bytes[at..].iter().position(|b| *b == b'"' || *b == b'\n');
                match length {
                    Some(length) if bytes[at + length] == b'"' => {
                        words.push(word(at, at + length, true));
                        at += length + 1;
                    }
                    length => {
                        words.push(word(at, at + length.unwrap_or(bytes.len() - at), true));
                        return Err(unclosed_quote(text, start, words.len() - first));
                    }
                }
            }
            brace @ (b'{' | b'}') => {
                at += 1;
                words.push(word(start, at, false));
                open = nested(open, brace, words.len() - first)?;
            }
            _ => {
                while at < bytes.len() && !ends_word(bytes[at]) {
                    at += 1;
                }
                let comma = at - start > 1 && bytes[at - 1] == b',';
                let end = if comma { at - 1 } else { at };
                words.push(word(start, end, false));
                if comma {
                    words.push(word(end, at, false));
                }
            }
        }
    }
    Ok(open)
}

#[inline]
fn word(start: usize, end: usize, quoted: bool) -> Word {
    Word { start: start as u32, end: end as u32, quoted }
}

#[inline]
fn ends_word(byte: u8) -> bool {
    byte.is_ascii_whitespace() || matches!(byte, b'{' | b'}')
}

fn line_end(bytes: &[u8], at: usize) -> usize {
    bytes[at..].iter().position(|b| *b == b'\n').map_or(bytes.len(), |length| at + length)
}

fn nested(open: u32, brace: u8, word: usize) -> Result<u32, Refusal> {
    match brace {
        b'{' if open == BRACES_MAX => {
            Err(Refusal::new(format!("braces are nested deeper than {BRACES_MAX}"))
                .at_word(word as u32, "{")
                .quoting_nothing())
        }
        b'{' => Ok(open + 1),
        _ if open == 0 => Err(Refusal::new("a brace is closed that was never opened")
            .at_word(word as u32, "}")
            .quoting_nothing()),
        _ => Ok(open - 1),
    }
}

fn unclosed_quote(text: &str, start: usize, words: usize) -> Refusal {
    Refusal::new("a quotation mark is not closed")
        .at_word(words as u32, &text[start..])
        .remedy("close it with \" in the same line")
        .quoting_nothing()
}

/// The line (counted from 1) of `text` in which byte `at` stands.
pub fn line_of(text: &str, at: usize) -> u32 {
    1 + text.as_bytes()[..at.min(text.len())].iter().filter(|b| **b == b'\n').count() as u32
}

/// How many bytes of `text` are whole lines whose braces are closed: what can be executed now,
/// while the rest waits for more. A line with a fault counts as whole, so that it gets its answer.
pub fn complete_bytes(text: &str) -> usize {
    let mut done = 0;
    let mut words = Vec::new();
    while let Some((line, _)) = logical_line(&text[done..], &mut words, false) {
        done += line;
    }
    done
}

/// Take the first logical line of `text`, splitting it into `words` (cleared first): a line, and
/// when it leaves braces open, the lines that close them. Returns its length in bytes with the line
/// end, and how it split. `None` when it is not complete yet and not `last`.
pub fn logical_line(
    text: &str,
    words: &mut Vec<Word>,
    last: bool,
) -> Option<(usize, Result<End, Refusal>)> {
    words.clear();
    let (mut end, mut open) = (0, 0);
    if text.is_empty() {
        return None;
    }
    loop {
        let start = end;
        match text[start..].find('\n') {
            Some(length) => end += length + 1,
            None if last => end = text.len(),
            None => return None,
        }
        if end > COMMAND_BYTES_MAX {
            return Some((
                end,
                Err(Refusal::new("the command is longer than 1 MiB").quoting_nothing()),
            ));
        }
        match split_on(&text[..end], start, open, words, 0) {
            Err(refusal) => return Some((end, Err(refusal))),
            Ok(0) => return Some((end, Ok(End::Complete))),
            Ok(still) if words.len() > WORDS_MAX || (last && end == text.len()) => {
                return Some((end, Ok(End::Open(still))));
            }
            Ok(still) => open = still,
        }
    }
}

/// Finds where logical lines end in text that arrives in pieces. Each byte is looked at once,
/// however many pieces there are.
#[derive(Debug, Default)]
pub(crate) struct LineEnds {
    /// Bytes of the logical line that were looked at; they end with a line end.
    scanned: usize,
    /// Braces that are open behind them.
    open: u32,
    /// Words among them.
    words: usize,
}

impl LineEnds {
    /// The length of the first logical line of `text`, with its line end, by the rules of
    /// [`logical_line`]. `None`: it is not complete; call again with the same text and more.
    pub(crate) fn next(&mut self, text: &str, last: bool) -> Option<usize> {
        let mut words = Vec::new();
        loop {
            let start = self.scanned;
            let end = match text[start..].find('\n') {
                Some(length) => start + length + 1,
                None if last && !text.is_empty() => text.len(),
                None => return None,
            };
            words.clear();
            let split = split_on(&text[..end], start, self.open, &mut words, 0);
            self.words += words.len();
            let ends = match split {
                Err(_) | Ok(0) => true,
                Ok(_) => self.words > WORDS_MAX || (last && end == text.len()),
            };
            if ends || end > COMMAND_BYTES_MAX {
                *self = LineEnds::default();
                return Some(end);
            }
            (self.scanned, self.open) = (end, split.unwrap_or(0));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_ends_found_piece_by_piece_are_those_of_the_whole_text() {
        let parts = ["a", "{", "}", "\"", "\n", "#", " ", "x {\n", "}\n", "\"y\"", "\r\n"];
        bolero::check!().for_each(|bytes: &[u8]| {
            let text: String = bytes.iter().map(|b| parts[usize::from(*b) % parts.len()]).collect();
            let (mut at, mut ends) = (0, LineEnds::default());
            for piece in 0..=text.len() {
                while let Some(length) = ends.next(&text[at..piece], false) {
                    let whole = logical_line(&text[at..], &mut Vec::new(), false);
                    assert_eq!(whole.map(|(length, _)| length), Some(length), "{text:?}");
                    at += length;
                }
            }
            let rest = logical_line(&text[at..], &mut Vec::new(), true).map(|(length, _)| length);
            assert_eq!(ends.next(&text[at..], true), rest, "{text:?}");
        });
    }

    fn texts(line: &str) -> Vec<&str> {
        let mut words = Vec::new();
        split(line, &mut words).unwrap();
        words.iter().map(|w| w.text(line)).collect()
    }

    #[test]
    fn braces_quotes_commas_and_comments_split_as_written() {
        assert_eq!(texts("a  b{c d}\te"), ["a", "b", "{", "c", "d", "}", "e"]);
        assert_eq!(texts("name \"two words\" x # rest"), ["name", "two words", "x"]);
        assert_eq!(texts("permit, deny 1,2"), ["permit", ",", "deny", "1,2"]);
    }

    #[test]
    fn an_open_brace_continues_the_command_in_the_next_line() {
        let text = "new {\n name x\n}\nshow y\nrest";
        let mut words = Vec::new();
        let (length, end) = logical_line(text, &mut words, false).unwrap();
        assert_eq!((&text[..length], end), ("new {\n name x\n}\n", Ok(End::Complete)));
        assert_eq!(&text[complete_bytes(text)..], "rest");
    }

    #[test]
    fn an_unclosed_quotation_mark_is_refused() {
        let mut words = Vec::new();
        assert!(split("a \"b", &mut words).unwrap_err().to_string().contains("word 2"));
    }

    #[test]
    fn a_line_that_never_closes_its_brace_waits_for_more_and_ends_with_the_text() {
        let mut words = Vec::new();
        assert!(logical_line("a {\n", &mut words, false).is_none());
        assert_eq!(logical_line("a {\n", &mut words, true).unwrap().1, Ok(End::Open(1)));
    }
}
