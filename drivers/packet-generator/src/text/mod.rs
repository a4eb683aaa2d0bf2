//! Packets described as text: `{ IP4: 1.2.3 -> 4.5.6 UDP: 1.0.0.1 - 1.0.0.254 -> 2.0.0.1 … }`.
//!
//! The grammar is on the driver's page. A description is read by [`Description::parse`] and made
//! into packets, and fields that change from one to the next, by [`Description::plan`].

mod layers;
mod payload;
mod plan;
mod words;

pub use payload::Payload;
pub use plan::Plan;

use crate::edit::Order;
use layers::Fix;
use words::Tokens;

/// Why a description is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TextError {
    /// A word is wrong.
    #[error("word {number} of data, '{text}': {what}")]
    Word {
        /// Which word, counted from 1 inside the braces.
        number: usize,
        /// The word.
        text: String,
        /// What would be right.
        what: String,
    },
    /// A word is missing.
    #[error("data ends too early: {0}")]
    Ends(String),
    /// The whole does not work.
    #[error("{0}")]
    Whole(String),
}

/// A field with several values.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Field {
    offset: usize,
    width: usize,
    low: u128,
    count: u64,
    order: Order,
}

/// A packet as it was described.
#[derive(Clone, Debug)]
pub struct Description {
    /// The headers, each field at its lowest value, lengths and checksums not yet filled in.
    headers: Vec<u8>,
    payload: Payload,
    fields: Vec<Field>,
    /// Lengths and checksums, outermost first.
    fixes: Vec<Fix>,
    text: String,
}

impl Description {
    /// Read a description, with or without the braces around it.
    ///
    /// # Errors
    /// The text is no description; the error names the word.
    pub fn parse(text: &str) -> Result<Description, TextError> {
        let mut words = Tokens::new(text)?;
        let mut description = Description {
            headers: Vec::new(),
            payload: Payload::None,
            fields: Vec::new(),
            fixes: Vec::new(),
            text: words.joined(),
        };
        layers::parse(&mut words, &mut description)?;
        description.payload = payload::parse(&mut words)?;
        if let Some(word) = words.next() {
            return Err(word.wrong(
                "a layer such as `UDP:`, `incrementing N`, `hex 0x…` or the end belongs here",
            ));
        }
        if description.headers.is_empty() && description.payload.bytes() == 0 {
            return Err(TextError::Whole("data describes nothing".into()));
        }
        Ok(description)
    }

    /// The words, one space between two, without comments.
    pub fn text(&self) -> &str {
        &self.text
    }
}

#[cfg(test)]
mod tests;
