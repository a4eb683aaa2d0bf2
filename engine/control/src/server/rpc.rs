//! The API socket: JSON-RPC 2.0 (jsonrpc.org, 2013), one message a line.
//!
//! | method | params | result |
//! | --- | --- | --- |
//! | `cli` | `line` | `text`, `json` |
//! | `script` | `text`; its place: `name`, `line`, `applied`; `keep_going` | `text`, `json` |
//! | `document` | `do`, `text`; `language`, `message`, `confirm_s` | `text`, `json` |
//! | `command` | `command`, `args` | `text`, `json` |
//! | `complete` | `line`, `cursor` | `start`, `candidates`, `can_end` |
//! | `help` | `command` | `text`, `json` |
//! | `commands` | | the schema of all commands |
//! | `rpc.discover` | | all methods, as an OpenRPC document |
//! | `generation` | | `generation`: other than before when a command may have changed something |
//! | `show_interface`, … | the command's arguments | the JSON of the command's answer |
//! | `authenticate` | `token` | nothing; first of all where the program wants it (TCP) |
//!
//! While a command runs, notifications may come before its response, each with the `id` of its
//! request: `output` (`text`, `json`), `progress` (`what`, `done`, `total`), and in a script that
//! keeps going `refused` (as `data` of an error). A client that leaves
//! cancels what it began.
//!
//! A long answer (a table of more than 512 rows) is made as it is read. Its message is written in
//! pieces: `json` is whole, `text` is null. Should the answer break off, its message ends with
//! `incomplete`, which says why, as `data` of an error does. With the parameter `pages`, `"text"`
//! or `"json"`, a long answer comes in notifications `output` instead, each with a part of the
//! text (or of the text of the JSON) as `text`, and where it belongs as `page`: `first`, `more`,
//! `last`. The last page of a single command is its result.
//! Each command is a method under its first words, joined by `_`. With `if_generation` it is
//! refused ([`STALE`]) unless [`generation`](crate::Commands) answers the same still: two programs
//! that read, decide and write do not overwrite each other's changes. Such a method's long answer
//! that breaks off has `incomplete` beside `result`.
//!
//! Messages are handled in order; arrays of messages are not accepted.

use std::fmt::Write as _;

use serde_json::{Map, Value as Json, json};

use super::plain::HISTORY_LINES_MAX;
use super::{Answer, Ask, Origin};
use crate::error::{Kind, Refusal};
use crate::json_form::quoted;
use crate::openrpc::COMMON;
use crate::output::{Form, Output, Page};
use crate::script::OnRefusal;

/// Not JSON.
const PARSE_ERROR: i32 = -32700;
/// JSON, but not a request.
pub(crate) const INVALID_REQUEST: i32 = -32600;
const METHOD_NOT_FOUND: i32 = -32601;
const INVALID_PARAMS: i32 = -32602;
/// The router refused; `data` says what, where and what would be right.
const REFUSED: i32 = -32000;
/// The configuration is not what the client has read.
pub(crate) const STALE: i32 = -32001;
/// The client's role does not allow it.
const FORBIDDEN: i32 = -32003;

/// The first line of a script is at most this, so that counting on from it is safe.
const LINE_MAX: u64 = 1 << 31;

/// A client may claim so many commands before its script.
const APPLIED_MAX: u64 = 1 << 48;

/// A request that was understood.
pub(crate) struct Call {
    /// None: a notification, which gets no answer.
    pub(crate) responder: Option<Responder>,
    pub(crate) ask: Ask,
}

/// What clients have sent and nobody has read. Each byte is looked at a fixed number of times.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    bytes: Vec<u8>,
    /// The bytes up to here are dealt with.
    at: usize,
    /// The bytes up to here hold no line end that was not dealt with.
    scanned: usize,
}

impl Messages {
    /// Bytes that wait.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len() - self.at
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        if self.at > self.bytes.len() / 2 {
            self.bytes.drain(..self.at);
            self.scanned -= self.at;
            self.at = 0;
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// The next message, of less than `most` bytes; none if it is not whole.
    pub(crate) fn next(&mut self, ended: bool, most: usize) -> Result<Option<Vec<u8>>, Refusal> {
        let blanks =
            self.bytes[self.at..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        self.at += blanks;
        self.scanned = self.scanned.max(self.at);
        let found = self.bytes[self.scanned..].iter().position(|byte| *byte == b'\n');
        self.scanned = found.map_or(self.bytes.len(), |length| self.scanned + length);
        if self.scanned - self.at >= most {
            return Err(Refusal::new(format!("the message is longer than {most} bytes")));
        }
        if self.scanned == self.at || (found.is_none() && !ended) {
            return Ok(None);
        }
        let message = self.bytes[self.at..self.scanned].to_vec();
        self.at = self.scanned;
        Ok(Some(message))
    }
}

/// How the pages of a long answer come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pages {
    /// In one message.
    Joined,
    /// In notifications, as text.
    Text,
    /// In notifications, as the text of the JSON.
    Json,
}

/// Answers one request.
#[derive(Clone, Debug)]
pub(crate) struct Responder {
    id: Json,
    pages: Pages,
    /// The result is the answer's JSON alone.
    is_bare: bool,
    /// A long answer is being written: what is to follow when it breaks off, and whether it is the
    /// result of the request.
    open: Option<(Page, bool)>,
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
        Ok(ask) => {
            let pages = match params.get("pages").and_then(Json::as_str) {
                Some("text") => Pages::Text,
                Some("json") => Pages::Json,
                _ => Pages::Joined,
            };
            let is_bare = is_method(&ask);
            let responder = id.map(|id| Responder { id, pages, is_bare, open: None });
            Ok(Some(Call { responder, ask }))
        }
        Err((code, what)) => Err(error(id_of(&id), code, &what, None)),
    }
}

/// Is it a command under the name of its method?
fn is_method(ask: &Ask) -> bool {
    match ask {
        Ask::IfGeneration(_, ask) => is_method(ask),
        ask => matches!(ask, Ask::Method { .. }),
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
    let required = |name: &str| {
        text(name)?.ok_or_else(|| (INVALID_PARAMS, format!("{method}: {name} is missing")))
    };
    let number = |name: &str| params.get(name).and_then(Json::as_u64);
    let asked = match method {
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
        "document" => {
            let message = text("message")?;
            let line = document_line(
                &required("do")?,
                text("language")?.as_deref(),
                number("confirm_s"),
                message.as_deref(),
            )
            .map_err(|what| (INVALID_PARAMS, format!("document: {what}")))?;
            Ask::Document { line, text: required("text")? }
        }
        "command" => Ask::Command(without_common(params)),
        "complete" => {
            let line = required("line")?;
            let cursor = number("cursor")
                .map_or(line.len(), |cursor| cursor.min(line.len() as u64) as usize);
            Ask::Complete { line, cursor }
        }
        "help" => Ask::Help(text("command")?.unwrap_or_default()),
        "history" => Ask::History(history(params)?),
        "commands" => Ask::Schema,
        "rpc.discover" => Ask::Discover,
        "generation" => Ask::Generation,
        "authenticate" => Ask::Authenticate(required("token")?),
        _ => Ask::Method { method: method.into(), args: without_common(params) },
    };
    Ok(match text("if_generation")? {
        Some(generation) => Ask::IfGeneration(generation, Box::new(asked)),
        None => asked,
    })
}

/// The command that `document` means. The name of its file says which language the text has.
fn document_line(
    what: &str,
    language: Option<&str>,
    confirm_s: Option<u64>,
    message: Option<&str>,
) -> Result<String, String> {
    let file = match language {
        None | Some("yaml") => "document.yaml",
        Some("commands") => "document.cli",
        Some(_) => return Err("language must be yaml or commands".into()),
    };
    let has_options = confirm_s.is_some() || message.is_some();
    match what {
        "check" | "diff" if has_options => Err("confirm_s and message are for apply".into()),
        "check" | "diff" => Ok(format!("configuration {what} {file}")),
        "apply" => {
            let confirm = confirm_s.map_or(String::new(), |time| format!(" confirm {time}s"));
            let is_odd = |message: &str| message.contains(|c: char| c.is_control() || c == '"');
            let message = match message {
                None => String::new(),
                Some(message) if is_odd(message) => {
                    return Err("message must be one line without quotation marks".into());
                }
                Some(message) => format!(" message {}", quoted(message)),
            };
            Ok(format!("configuration apply {file}{confirm}{message}"))
        }
        _ => Err("do must be check, diff or apply".into()),
    }
}

/// The parameters but for those that every method has.
fn without_common(params: &Map<String, Json>) -> Json {
    let own = params.iter().filter(|(name, _)| COMMON.iter().all(|(common, _)| common != name));
    own.map(|(name, value)| (name.clone(), value.clone())).collect::<Map<String, Json>>().into()
}

/// The methods of the API itself, for its document.
pub(crate) fn methods() -> Vec<Json> {
    let text = || json!({ "type": "string" });
    let method = |name: &str, summary: &str, params: &[(&str, bool, Json)], result: Json| {
        let param = |given: &(&str, bool, Json)| {
            let (name, required, schema) = given;
            json!({ "name": name, "required": required, "schema": schema })
        };
        json!({
            "name": name, "summary": summary, "paramStructure": "by-name",
            "params": params.iter().map(param).collect::<Vec<_>>(),
            "result": { "name": "answer", "schema": result },
        })
    };
    let both = || {
        json!({
            "type": "object",
            "properties": { "text": { "type": ["string", "null"] }, "json": true },
            "required": ["text", "json"],
        })
    };
    let generation = json!({
        "type": "object", "properties": { "generation": text() }, "required": ["generation"],
    });
    vec![
        method("rpc.discover", "This document", &[], json!({ "type": "object" })),
        method("cli", "Execute a command line", &[("line", true, text())], both()),
        method(
            "script",
            "Execute many command lines",
            &[
                ("text", true, text()),
                ("name", false, text()),
                ("line", false, json!({ "type": "integer", "minimum": 1 })),
                ("applied", false, json!({ "type": "integer", "minimum": 0 })),
                ("keep_going", false, json!({ "type": "boolean" })),
            ],
            both(),
        ),
        method(
            "document",
            "Check a document that says what the router is to be, compare, or make the router so",
            &[
                ("do", true, json!({ "enum": ["check", "diff", "apply"] })),
                ("text", true, text()),
                ("language", false, json!({ "enum": ["yaml", "commands"], "default": "yaml" })),
                ("message", false, text()),
                ("confirm_s", false, json!({ "type": "integer", "minimum": 1 })),
            ],
            both(),
        ),
        method(
            "command",
            "Execute a command in its JSON form",
            &[("command", true, text()), ("args", false, json!({ "type": "object" }))],
            both(),
        ),
        method(
            "complete",
            "Say what could stand at a place of a line",
            &[
                ("line", true, text()),
                ("cursor", false, json!({ "type": "integer", "minimum": 0 })),
            ],
            json!({ "type": "object" }),
        ),
        method("commands", "All commands and their schema", &[], json!({ "type": "array" })),
        method("generation", "The state of the configuration", &[], generation),
        method(
            "authenticate",
            "Say the token; first of all where the router wants it (TCP)",
            &[("token", true, text())],
            json!({ "type": "object" }),
        ),
    ]
}

/// The lines that a client said; more, and longer ones, than a session keeps are refused.
fn history(params: &Map<String, Json>) -> Result<Vec<String>, (i32, String)> {
    let wrong =
        || (INVALID_PARAMS, format!("history: lines must be at most {HISTORY_LINES_MAX} texts"));
    let lines = params.get("lines").and_then(Json::as_array).ok_or_else(wrong)?;
    let lines = (lines.len() <= HISTORY_LINES_MAX).then_some(lines).ok_or_else(wrong)?;
    lines.iter().map(|line| line.as_str().map(str::to_owned).ok_or_else(wrong)).collect()
}

impl Responder {
    /// The message, or the piece of one, that carries an answer. `is_direct`: it belongs to the
    /// result of the request.
    pub(crate) fn message(&mut self, answer: &Answer, is_direct: bool) -> String {
        match answer {
            Answer::Part { output, .. } | Answer::Done(Ok(output)) if output.page().is_some() => {
                self.page(output, is_direct)
            }
            Answer::Part { output, .. } if output.is_empty() => String::new(),
            Answer::Part { output, .. } => self.notify("output", both(output)),
            Answer::Progress(_) if self.open.is_some() => String::new(),
            Answer::Progress(progress) => {
                let told =
                    json!({"what": progress.what, "done": progress.done, "total": progress.total});
                self.notify("progress", told)
            }
            Answer::Refused(refusal) => {
                let broken = self.break_off(refusal);
                broken.0 + &self.notify("refused", refusal.to_json())
            }
            Answer::Done(Ok(output)) => {
                let result = match output.bare_json() {
                    Some(json) => json.clone(),
                    None if self.is_bare => output.to_json(),
                    None => both(output),
                };
                line(&json!({"jsonrpc": "2.0", "id": self.id, "result": result}))
            }
            Answer::Done(Err(refusal)) => match self.break_off(refusal) {
                (broken, true) => broken,
                (broken, false) => {
                    let code = match refusal.kind() {
                        Kind::Refused => REFUSED,
                        Kind::NoMethod => METHOD_NOT_FOUND,
                        Kind::Stale => STALE,
                        Kind::Forbidden => FORBIDDEN,
                    };
                    broken + &error(&self.id, code, &refusal.to_string(), Some(refusal))
                }
            },
        }
    }

    fn notify(&self, method: &str, mut params: Json) -> String {
        params["id"] = self.id.clone();
        line(&json!({"jsonrpc": "2.0", "method": method, "params": params}))
    }

    /// A page of a long answer.
    fn page(&mut self, output: &Output, is_direct: bool) -> String {
        let Some(page) = output.page() else { return String::new() };
        let form = match self.pages {
            Pages::Joined => return self.piece(output, page, is_direct),
            Pages::Text => Form::AsTold,
            Pages::Json => Form::Json,
        };
        let place = match page {
            Page { last: true, .. } => "last",
            Page { first: true, .. } => "first",
            _ => "more",
        };
        let told = json!({"text": output.written(form), "json": Json::Null, "page": place});
        if is_direct && page.last {
            return line(&json!({"jsonrpc": "2.0", "id": self.id, "result": told}));
        }
        self.notify("output", told)
    }

    /// A piece of the one message that has all pages.
    fn piece(&mut self, output: &Output, page: Page, is_direct: bool) -> String {
        let mut text = String::new();
        if page.first {
            let id = &self.id;
            let _ = match is_direct {
                true if self.is_bare => {
                    write!(text, "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":")
                }
                true => write!(text, "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"json\":"),
                false => write!(
                    text,
                    "{{\"jsonrpc\":\"2.0\",\"method\":\"output\",\"params\":{{\"id\":{id},\"json\":"
                ),
            };
        }
        text += &output.written(Form::Compact);
        if page.last {
            text += self.end_of_message(is_direct);
            text.push('\n');
        }
        self.open = (!page.last).then_some((page, is_direct));
        text
    }

    /// End the message of a long answer that does not go on. Says whether it was the result.
    fn break_off(&mut self, refusal: &Refusal) -> (String, bool) {
        let Some((page, is_direct)) = self.open.take() else { return (String::new(), false) };
        let (why, closing) = (refusal.to_json(), page.closing());
        let message = match self.is_bare && is_direct {
            true => format!("{closing},\"incomplete\":{why}}}\n"),
            false => format!("{closing},\"text\":null,\"incomplete\":{why}}}}}\n"),
        };
        (message, is_direct)
    }

    /// What closes a message whose answer came in pieces.
    fn end_of_message(&self, is_direct: bool) -> &'static str {
        if self.is_bare && is_direct { "}" } else { ",\"text\":null}}" }
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
            let pieces: String =
                bytes.iter().map(|b| PIECES[usize::from(*b) % PIECES.len()]).collect();
            for line in [bytes, pieces.as_bytes()] {
                if let Err(response) = parse(line) {
                    let response: Json = serde_json::from_str(&response).unwrap();
                    assert!(response["error"]["code"].is_i64() && response.get("id").is_some());
                }
            }
        });
    }

    #[test]
    fn messages_are_found_in_whatever_pieces_they_come() {
        bolero::check!().with_type::<(Vec<u8>, u8)>().for_each(|(bytes, size)| {
            let text: Vec<u8> = bytes.iter().map(|b| b"ab \n"[usize::from(*b) % 4]).collect();
            let wanted: Vec<&[u8]> = text
                .split(|byte| *byte == b'\n')
                .map(|line| line.trim_ascii_start())
                .filter(|line| !line.is_empty())
                .collect();
            let (mut messages, mut found) = (Messages::default(), Vec::new());
            for piece in text.chunks(usize::from(*size % 7) + 1) {
                messages.push(piece);
                while let Ok(Some(message)) = messages.next(false, 1 << 20) {
                    found.push(message);
                }
            }
            while let Ok(Some(message)) = messages.next(true, 1 << 20) {
                found.push(message);
            }
            assert_eq!(found, wanted);
        });
    }

    #[test]
    fn a_long_answer_that_breaks_off_is_json_and_says_so() {
        let page = Page { first: true, last: false, is_object: false, rows_before: false };
        let mut table = crate::Table::new([crate::Column::left("Name")]);
        table.row().cell("e0");
        let part = Answer::Part { output: Output::from(table).on_page(page), is_direct: true };
        let mut responder =
            Responder { id: json!(7), pages: Pages::Joined, is_bare: false, open: None };
        let mut text = responder.message(&part, true);
        text += &responder.message(&Answer::Done(Err(Refusal::new("the table is gone"))), true);
        let message: Json = serde_json::from_str(&text).unwrap();
        assert_eq!(
            (&message["id"], &message["result"]["json"][0]["name"]),
            (&json!(7), &json!("e0"))
        );
        assert_eq!(message["result"]["incomplete"]["message"], "the table is gone");
    }

    #[test]
    fn a_part_of_a_script_says_where_it_goes_on() {
        let line = br#"{"jsonrpc":"2.0","id":1,"method":"script",
            "params":{"text":"x","line":18446744073709551615,"applied":3}}"#;
        let Ok(Some(Call { ask: Ask::Script { from, .. }, .. })) = parse(line) else {
            panic!("not a script")
        };
        assert_eq!((from.line, from.applied, from.on_refusal), (1 << 31, 3, OnRefusal::Stop));
    }

    #[test]
    fn a_document_is_a_command_about_a_file_that_comes_with_it() {
        let line = |what, language, confirm_s, message| {
            document_line(what, language, confirm_s, message).map_err(|what| what.to_string())
        };
        assert_eq!(line("diff", None, None, None).unwrap(), "configuration diff document.yaml");
        assert_eq!(
            line("apply", Some("commands"), Some(60), Some("two words")).unwrap(),
            "configuration apply document.cli confirm 60s message \"two words\""
        );
        for wrong in [
            line("delete", None, None, None),
            line("diff", Some("toml"), None, None),
            line("check", None, Some(1), None),
            line("apply", None, None, Some("a\nset interface state e0 up")),
            line("apply", None, None, Some("a\" confirm 1s \"")),
        ] {
            assert!(wrong.is_err(), "{wrong:?}");
        }
    }
}
