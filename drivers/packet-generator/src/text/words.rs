//! The words of a description.

use super::TextError;

/// Longest description, bytes.
const TEXT_BYTES_MAX: usize = 1 << 20;
/// Characters of a wrong word that a message shows.
const QUOTED_CHARS_MAX: usize = 40;

/// A word and its number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Word<'a> {
    pub(super) number: usize,
    pub(super) text: &'a str,
}

impl Word<'_> {
    /// This word is wrong; `what` would be right.
    pub(super) fn wrong(&self, what: impl Into<String>) -> TextError {
        let text = self.text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c });
        TextError::Word {
            number: self.number,
            text: text.take(QUOTED_CHARS_MAX).collect(),
            what: what.into(),
        }
    }

    /// The same word in any case of letters?
    pub(super) fn is(&self, word: &str) -> bool {
        self.text.eq_ignore_ascii_case(word)
    }
}

/// All words, and where the reader is.
pub(super) struct Tokens<'a> {
    words: Vec<&'a str>,
    at: usize,
}

impl<'a> Tokens<'a> {
    /// Split at white space; `->` is a word of its own; `#` begins a comment. Braces around the
    /// whole are taken off.
    pub(super) fn new(text: &'a str) -> Result<Tokens<'a>, TextError> {
        if text.len() > TEXT_BYTES_MAX {
            return Err(TextError::Whole("the description is longer than 1 MiB".into()));
        }
        let text = text.trim();
        let text = text.strip_prefix('{').and_then(|t| t.strip_suffix('}')).unwrap_or(text);
        let mut words = Vec::new();
        for line in text.lines() {
            for word in line.split_whitespace() {
                if word.starts_with('#') {
                    break;
                }
                let mut rest = word;
                while let Some((before, after)) = rest.split_once("->") {
                    words.extend((!before.is_empty()).then_some(before));
                    words.push("->");
                    rest = after;
                }
                words.extend((!rest.is_empty()).then_some(rest));
            }
        }
        Ok(Tokens { words, at: 0 })
    }

    pub(super) fn joined(&self) -> String {
        self.words.join(" ")
    }

    pub(super) fn peek(&self) -> Option<Word<'a>> {
        self.ahead(0)
    }

    /// The word behind `count` others.
    pub(super) fn ahead(&self, count: usize) -> Option<Word<'a>> {
        let at = self.at + count;
        self.words.get(at).map(|text| Word { number: at + 1, text })
    }

    pub(super) fn next(&mut self) -> Option<Word<'a>> {
        let word = self.peek()?;
        self.at += 1;
        Some(word)
    }

    /// The next word, which must be there; `what` it should be.
    pub(super) fn need(&mut self, what: &str) -> Result<Word<'a>, TextError> {
        self.next().ok_or_else(|| TextError::Ends(format!("{what} is missing")))
    }

    /// Take the next word when it is this one.
    pub(super) fn take(&mut self, word: &str) -> bool {
        let found = self.peek().is_some_and(|w| w.is(word));
        self.at += usize::from(found);
        found
    }

    /// A number from 0 to `max`.
    pub(super) fn number(&mut self, what: &str, max: u64) -> Result<u64, TextError> {
        let word = self.need(what)?;
        number(word.text)
            .filter(|n| *n <= max)
            .ok_or_else(|| word.wrong(format!("{what} is a number from 0 to {max}")))
    }
}

/// Decimal, or hexadecimal after `0x`.
pub(super) fn number(text: &str) -> Option<u64> {
    let (digits, radix) = match text.strip_prefix("0x") {
        Some(digits) => (digits, 16),
        None => (text, 10),
    };
    let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_hexdigit());
    plain.then(|| u64::from_str_radix(digits, radix).ok()).flatten()
}
