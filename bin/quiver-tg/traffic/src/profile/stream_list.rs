//! The streams of a profile as its text has them, to add some, replace some, take some out.

use serde_json::{Value as Json, json};

use super::document::Profile;

/// A profile's text, taken apart.
pub struct StreamList {
    profile: Json,
}

impl StreamList {
    /// The streams of a profile that was read.
    ///
    /// # Errors
    /// When the text of the profile cannot be parsed again.
    pub fn of(profile: &Profile) -> Result<StreamList, String> {
        let parsed = serde_saphyr::from_str(&profile.text).map_err(|error| error.to_string());
        Ok(StreamList { profile: parsed? })
    }

    /// The text of the profile as it is now.
    pub fn text(&self) -> String {
        self.profile.to_string()
    }

    fn streams(&mut self) -> Result<&mut Vec<Json>, String> {
        let streams = self.profile.get_mut("streams").and_then(Json::as_array_mut);
        streams.ok_or_else(|| "the profile has no list of streams to change".to_owned())
    }

    fn place(&mut self, number: usize) -> Result<&mut Json, String> {
        let streams = self.streams()?;
        let count = streams.len();
        streams.get_mut(number).ok_or_else(|| no_stream(number, count))
    }

    /// Append a stream, given as JSON.
    ///
    /// # Errors
    /// When the text is no stream, or the profile has no list of streams.
    pub fn add(&mut self, stream: &str) -> Result<(), String> {
        let stream = read(stream)?;
        self.streams()?.push(stream);
        Ok(())
    }

    /// Replace a stream by another, given as JSON.
    ///
    /// # Errors
    /// When there is no such stream, or the text is none.
    pub fn replace(&mut self, number: usize, stream: &str) -> Result<(), String> {
        *self.place(number)? = read(stream)?;
        Ok(())
    }

    /// Delete a stream.
    ///
    /// # Errors
    /// When there is no such stream.
    pub fn delete(&mut self, number: usize) -> Result<(), String> {
        self.place(number)?;
        self.streams()?.remove(number);
        Ok(())
    }
}

fn read(stream: &str) -> Result<Json, String> {
    let example = json!({"from": 0, "to": 1});
    match serde_saphyr::from_str::<Json>(stream) {
        Ok(stream @ Json::Object(_)) => Ok(stream),
        _ => Err(format!("`{stream}` is no stream; one looks like {example}")),
    }
}

/// The message for a stream number that does not exist.
pub fn no_stream(stream: usize, count: usize) -> String {
    format!("no stream {stream}; there are 0 to {}", count.saturating_sub(1))
}
