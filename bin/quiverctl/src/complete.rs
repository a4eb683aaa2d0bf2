//! Completion for shells: the router says what could follow.

use serde_json::{Value as Json, json};

use crate::connection::{Connection, Place};
use crate::print::Printer;

/// Print each word that could stand at the end of the line, and its help behind a tab. A router
/// that does not answer completes nothing: a shell has no place for an error.
pub fn print(place: &Place, line: &str) {
    let Ok(mut connection) = Connection::open(place) else { return };
    let params = json!({"line": line, "cursor": line.len()});
    if let Ok(found) = connection.call("complete", params, &mut Printer::new(false)) {
        print!("{}", lines(&found));
    }
}

/// The words of an answer, a line each.
fn lines(found: &Json) -> String {
    let candidates = found["candidates"].as_array().map(Vec::as_slice).unwrap_or_default();
    let text = |candidate: &Json, key: &str| {
        candidate[key].as_str().unwrap_or_default().replace(['\n', '\t'], " ")
    };
    candidates
        .iter()
        .filter(|candidate| candidate["text"].as_str().is_some_and(|text| !text.is_empty()))
        .map(|candidate| format!("{}\t{}\n", text(candidate, "text"), text(candidate, "help")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_candidate_is_a_line_and_what_has_no_text_is_left_out() {
        let found = json!({"start": 5, "candidates": [
            {"text": "interface", "label": "interface", "help": "Show\tinterfaces"},
            {"text": "", "label": "<address>", "help": "an address"},
            {"text": "ip", "label": "ip"},
        ]});
        assert_eq!(lines(&found), "interface\tShow interfaces\nip\t\n");
        assert_eq!(lines(&json!({})), "");
    }
}
