//! Commands on standard input that is not a terminal.

use std::io::BufRead;

use quiver_control::words;
use serde_json::json;

use crate::connection::{Connection, Failure};
use crate::print::Printer;

/// Commands are handed to the router in pieces of about this size.
pub const PIECE_BYTES: usize = 512 * 1024;

/// Longer than this no piece may become while a command in it is not complete.
const PIECE_BYTES_MAX: usize = 2 * 1024 * 1024;

/// What messages call standard input.
pub const STDIN: &str = "stdin";

/// Execute what `input` says, up to the first command that is refused, or all of it; messages call
/// it `name`. Returns how many commands were applied.
pub fn run(
    connection: &mut Connection,
    mut input: impl BufRead,
    name: &str,
    keep_going: bool,
    printer: &mut Printer,
) -> Result<u64, Failure> {
    let (mut line, mut applied) = (1u64, 0u64);
    let mut text = String::new();
    loop {
        let mut ended = fill(&mut input, name, &mut text)?;
        let length = if ended { text.len() } else { words::complete_bytes(&text) };
        let rest = text.split_off(length);
        let piece = std::mem::replace(&mut text, rest);
        if !piece.is_empty() {
            let lines = piece.bytes().filter(|byte| *byte == b'\n').count() as u64;
            let params = json!({
                "text": piece, "name": name, "line": line, "applied": applied,
                "keep_going": keep_going,
                "pages": printer.pages(),
            });
            let result = connection.call("script", params, printer)?;
            applied = result["json"]["commands"].as_u64().unwrap_or(applied);
            line += lines;
            ended |= result["json"]["quit"] == true;
        }
        if ended {
            return if printer.any_refused { Err(Failure::Told) } else { Ok(applied) };
        }
    }
}

/// Read lines until there is a piece. Returns whether the input has ended. What comes line by line,
/// from a program that waits for answers, is handed on at once.
fn fill(input: &mut impl BufRead, name: &str, text: &mut String) -> Result<bool, Failure> {
    let failed = |why: String| Failure::Unreachable(format!("{name}: {why}"));
    loop {
        let buffer = input.fill_buf().map_err(|error| failed(error.to_string()))?;
        if buffer.is_empty() {
            return Ok(true);
        }
        let end = buffer.iter().rposition(|byte| *byte == b'\n').map_or(buffer.len(), |at| at + 1);
        let whole = buffer[end - 1] == b'\n';
        let mut bytes = buffer[..end].to_vec();
        input.consume(end);
        if !whole {
            input.read_until(b'\n', &mut bytes).map_err(|error| failed(error.to_string()))?;
        }
        text.push_str(&String::from_utf8(bytes).map_err(|_| failed("not text in UTF-8".into()))?);
        let complete = words::complete_bytes(text) > 0;
        if complete || text.len() >= PIECE_BYTES {
            if !complete && text.len() > PIECE_BYTES_MAX {
                return Err(failed("a command is longer than 2 MiB".into()));
            }
            return Ok(false);
        }
    }
}
