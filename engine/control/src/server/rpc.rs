//! The API socket: JSON-RPC 2.0 (jsonrpc.org, 2013), one message a line.
//!
//! | method | params | result |
//! | --- | --- | --- |
//! | `cli` | `line` | `text`, `json` |
//! | `script` | `text`, and where it is from: `name`, `line`, `applied`; `keep_going` | `text`, `json` |
//! | `command` | `command`, `args` | `text`, `json` |
//! | `complete` | `line`, `cursor` | `start`, `candidates`, `can_end` |
//! | `help` | `command` | `text`, `json` |
//! | `commands` | | the schema of all commands |
//!
//! While a command runs, notifications may come before its response, each with the `id` of its
//! request: `output` (`text`, `json`), `progress` (`what`, `done`, `total`), and in a script that
//! keeps going `refused` (as `data` of an error). A client that leaves
//! cancels what it began. Messages are handled in order; arrays of messages are not accepted.

use serde_json::{Map, Value as Json, json};

use super::{Answer, Ask, Origin};
use crate::error::Refusal;
use crate::output::Output;
use crate::script::OnRefusal;

/// Not JSON.
const PARSE_ERROR: i32 = -32700;
/// JSON, but not a request.
pub(crate) const INVALID_REQUEST: i32 = -32600;
const METHOD_NOT_FOUND: i32 = -32601;
const INVALID_PARAMS: i32 = -32602;
/// The router refused; `data` says what, where and what would be right.
const REFUSED: i32 = -32000;

/// The first line of a script is at most this, so that counting on from it is safe.
const LINE_MAX: u64 = 1 << 31;

/// A client may claim so many commands before its script.
const APPLIED_MAX: u64 = 1 << 48;

/// A request that was understood.
pub(crate) struct Call {
    /// None: a notification, which gets no answer.
    pub(crate) id: Option<Json>,
    pub(crate) ask: Ask,
}

/// Read one line. An empty one is nothing; the error is the response to send.
pub(crate) fn parse(line: &[u8]) -> Result<Option<Call>, String> {
    if line.iter().all(u8::is_ascii_whitespace) {
        return Ok(None);
    }
    let message: Json = serde_json::from_slice(line)
        .map_err(|fault| error(&Json::Null, PARSE_ERROR, &format!("not JSON: {fault}"), None))?;
    let invalid = |what: &str| error(&Json::Null, INVALID_REQUEST, what, None);
    let object = message.as_object().ok_or_else(|| invalid("a request is an object"))?;
    let id = object.get("id").cloned();
    if !matches!(id, None | Some(Json::Null | Json::String(_) | Json::Number(_))) {
        return Err(invalid("an id is a text or a number"));
    }
    if object.get("jsonrpc") != Some(&json!("2.0")) {
        return Err(error(id_of(&id), INVALID_REQUEST, "the member jsonrpc must be \"2.0\"", None));
    }
    let Some(method) = object.get("method").and_then(Json::as_str) else {
        return Err(error(id_of(&id), INVALID_REQUEST, "the member method is missing", None));
    };
    let none = Map::new();
    let params = match object.get("params") {
        None | Some(Json::Null) => &none,
        Some(Json::Object(params)) => params,
        Some(_) => return Err(error(id_of(&id), INVALID_PARAMS, "params must be an object", None)),
    };
    match ask(method, params) {
        Ok(ask) => Ok(Some(Call { id, ask })),
        Err((code, what)) => Err(error(id_of(&id), code, &what, None)),
    }
}

fn id_of(id: &Option<Json>) -> &Json {
    id.as_ref().unwrap_or(&Json::Null)
}

fn ask(method: &str, params: &Map<String, Json>) -> Result<Ask, (i32, String)> {
    let text = |name: &str| -> Result<Option<String>, (i32, String)> {
        match params.get(name) {
            None | Some(Json::Null) => Ok(None),
            Some(Json::String(text)) => Ok(Some(text.clone())),
            Some(_) => Err((INVALID_PARAMS, format!("{method}: {name} must be a text"))),
        }
    };
    let required =
        |name: &str| text(name)?.ok_or_else(|| (INVALID_PARAMS, format!("{method}: {name} is missing")));
    let number = |name: &str| params.get(name).and_then(Json::as_u64);
    Ok(match method {
        "cli" => Ask::Line(required("line")?),
        "script" => {
            let keep_going = params.get("keep_going").and_then(Json::as_bool).unwrap_or(false);
            let from = Origin {
                name: text("name")?.unwrap_or_else(|| "script".into()),
                line: number("line").map_or(1, |line| line.min(LINE_MAX) as u32),
                applied: number("applied").map_or(0, |applied| applied.min(APPLIED_MAX)),
                on_refusal: if keep_going { OnRefusal::Continue } else { OnRefusal::Stop },
            };
            Ask::Script { text: required("text")?, from }
        }
        "command" => Ask::Command(Json::Object(params.clone())),
        "complete" => {
            let line = required("line")?;
            let cursor = number("cursor").map_or(line.len(), |cursor| cursor.min(line.len() as u64) as usize);
            Ask::Complete { line, cursor }
        }
        "help" => Ask::Help(text("command")?.unwrap_or_default()),
        "commands" => Ask::Schema,
        _ => {
            let what = "there is no such method; there are cli, script, command, complete, help and commands";
            return Err((METHOD_NOT_FOUND, what.into()));
        }
    })
}

/// The message that carries an answer to request `id`.
pub(crate) fn message(id: &Json, answer: &Answer) -> String {
    let notify = |method: &str, mut params: Json| {
        params["id"] = id.clone();
        line(&json!({"jsonrpc": "2.0", "method": method, "params": params}))
    };
    match answer {
        Answer::Part(output) if output.is_empty() => String::new(),
        Answer::Part(output) => notify("output", both(output)),
        Answer::Progress(progress) => {
            notify("progress", json!({"what": progress.what, "done": progress.done, "total": progress.total}))
        }
        Answer::Refused(refusal) => notify("refused", refusal.to_json()),
        Answer::Done(Ok(output)) => {
            let result = output.bare_json().cloned().unwrap_or_else(|| both(output));
            line(&json!({"jsonrpc": "2.0", "id": id, "result": result}))
        }
        Answer::Done(Err(refusal)) => error(id, REFUSED, &refusal.to_string(), Some(refusal)),
    }
}

fn both(output: &Output) -> Json {
    json!({"text": output.to_text(), "json": output.to_json()})
}

/// An error response.
pub(crate) fn error(id: &Json, code: i32, message: &str, refusal: Option<&Refusal>) -> String {
    let mut error = json!({"code": code, "message": message});
    if let Some(refusal) = refusal {
        error["data"] = refusal.to_json();
    }
    line(&json!({"jsonrpc": "2.0", "id": id, "error": error}))
}

fn line(message: &Json) -> String {
    let mut text = message.to_string();
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pieces of messages, for inputs made of numbers.
    const PIECES: &[&str] = &[
        "{",
        "}",
        "\"jsonrpc\":\"2.0\"",
        ",",
        "\"id\":1",
        "\"id\":{}",
        "\"method\":\"cli\"",
        "\"method\":\"script\"",
        "\"method\":\"complete\"",
        "\"params\":{\"line\":\"show\",\"text\":\"x\",\"cursor\":99}",
        "\"params\":[1]",
        "\"params\":{\"line\":-1,\"text\":\"\\u0000\"}",
        "[",
        "]",
        "null",
        "1e999",
        "\"",
        "\\ud800",
    ];

    #[test]
    fn no_bytes_make_the_parser_of_messages_panic() {
        bolero::check!().for_each(|bytes: &[u8]| {
            let pieces: String = bytes.iter().map(|b| PIECES[usize::from(*b) % PIECES.len()]).collect();
            for line in [bytes, pieces.as_bytes()] {
                if let Err(response) = parse(line) {
                    let response: Json = serde_json::from_str(&response).unwrap();
                    assert!(response["error"]["code"].is_i64() && response.get("id").is_some());
                }
            }
        });
    }

    #[test]
    fn a_part_of_a_script_says_where_it_goes_on() {
        let line = br#"{"jsonrpc":"2.0","id":1,"method":"script","params":{"text":"x","line":18446744073709551615,"applied":3}}"#;
        let Ok(Some(Call { ask: Ask::Script { from, .. }, .. })) = parse(line) else {
            panic!("not a script")
        };
        assert_eq!((from.line, from.applied, from.on_refusal), (1 << 31, 3, OnRefusal::Stop));
    }
}
