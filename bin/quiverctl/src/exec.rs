//! Commands as the user writes them. `exec FILE` is done here: the file is the user's, read with
//! the user's rights, where the user is.

use std::fs::File;
use std::io::BufReader;

use quiver_control::words;
use serde_json::json;

use crate::connection::{Connection, Failure};
use crate::pipe;
use crate::print::Printer;

/// Execute one command and print what it says.
pub fn command(
    connection: &mut Connection,
    line: &str,
    printer: &mut Printer,
) -> Result<(), Failure> {
    let Some(name) = file_of(line) else { return connection.command(line, printer) };
    let refused = |why: String| Failure::Refused(json!({ "message": why }));
    let file = File::open(&name).and_then(|file| Ok((file.metadata()?, file)));
    let file = match file {
        Ok((about, _)) if about.is_dir() => return Err(refused(format!("{name} is not a file"))),
        Ok((_, file)) => file,
        Err(error) => return Err(refused(format!("cannot read {name}: {error}"))),
    };
    let input = BufReader::with_capacity(pipe::PIECE_BYTES, file);
    let applied = pipe::run(connection, input, &name, false, printer)?;
    printer.answer(&json!({ "text": "", "json": { "commands": applied } }))
}

/// The file that a command `exec FILE` names.
fn file_of(line: &str) -> Option<String> {
    let mut split = Vec::new();
    words::split(line, &mut split).ok()?;
    match split.as_slice() {
        [exec, file] if exec.text(line) == "exec" && (file.quoted || file.text(line) != "?") => {
            Some(file.text(line).to_owned())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exec_with_a_file_is_for_the_client() {
        assert_eq!(file_of(" exec  a.cli # x").as_deref(), Some("a.cli"));
        assert_eq!(file_of("exec \"two words\"").as_deref(), Some("two words"));
        for other in ["exec", "exec ?", "exec a b", "exec a | count", "show exec", "", "exec \"a"] {
            assert_eq!(file_of(other), None, "{other}");
        }
    }
}
