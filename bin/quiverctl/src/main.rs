//! The router's command line client: one command, commands from a pipe, or a session; and `top`.
//!
//! It knows no command itself: help and completion come from the router, over its API socket.

mod complete;
mod connection;
mod document;
mod exec;
mod import;
mod pager;
mod pipe;
mod print;
mod session;
mod top;

use std::io::{BufReader, IsTerminal, stdin};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use quiver_control::client::Remote;
use quiver_control::{paths, quoted};

use connection::{Connection, Failure, Place};
use print::Printer;

/// Talk to a running router.
///
/// With a command, executes it: `quiverctl show interface`. Without one, executes the commands on
/// standard input; from a terminal that is a session with history, completion by Tab and help by ?.
/// `quiverctl top` shows live what the router does (`quiverctl top --help`).
/// `quiverctl check FILE` tells the mistakes of a configuration in a file, `diff FILE` how it
/// differs from the one that runs, `apply FILE` makes the router what it says, and `export` prints
/// the one that runs, secrets and all. A FILE whose name ends with .yaml or .yml, or that `--format
/// yaml` says to be one, is a YAML document; `export --format yaml` prints one.
/// `quiverctl import vppcfg FILE` makes such a document of a file of vppcfg.
/// `apply FILE --confirm 60s` is taken back unless `confirm` follows in that time; `--message TEXT`
/// says what it is about. `history` lists the versions, `export N` prints one, `rollback [N]`
/// returns to one, and `save` keeps what runs.
/// The exit code is 0 when all went well, 1 when a command was refused, 3 when the router cannot be
/// reached.
#[derive(Parser)]
#[command(name = "quiverctl", version)]
struct Arguments {
    /// The router's API socket [default: api.sock in $QUIVER_RUNTIME_DIR, or in /run/quiver]
    #[arg(short, long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// A router elsewhere, by TLS with certificates of both sides
    #[arg(
        long,
        value_name = "HOST:PORT",
        conflicts_with = "socket",
        requires_all = ["certificate", "key", "ca"]
    )]
    tls: Option<String>,
    /// Our certificate for --tls, in PEM
    #[arg(long, value_name = "FILE", requires = "tls")]
    certificate: Option<PathBuf>,
    /// Its private key, in PEM, which others may not read
    #[arg(long, value_name = "FILE", requires = "tls")]
    key: Option<PathBuf>,
    /// Whose certificate the router must have, in PEM
    #[arg(long, value_name = "FILE", requires = "tls")]
    ca: Option<PathBuf>,
    /// Print answers as JSON
    #[arg(short, long)]
    json: bool,
    /// With commands on standard input: go on after one is refused
    #[arg(short, long)]
    keep_going: bool,
    /// Print what could follow a line, as completion of shells needs it
    #[arg(long, value_name = "LINE", hide = true)]
    complete: Option<String>,
    /// Write the manual page into a folder; for packages
    #[arg(long, value_name = "FOLDER", hide = true)]
    documents: Option<PathBuf>,
    /// A command; words may be cut to a unique prefix
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<String>,
}

impl Arguments {
    /// Where the router is.
    fn place(&self) -> Place {
        let certificates = (self.certificate.clone(), self.key.clone(), self.ca.clone());
        match (self.tls.clone(), certificates) {
            (Some(place), (Some(certificate), Some(key), Some(ca))) => {
                Place::Elsewhere(Remote { place, certificate, key, ca })
            }
            _ => {
                let usual = || paths::api_socket(&paths::router_dir());
                Place::Here(self.socket.clone().unwrap_or_else(usual))
            }
        }
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let place = arguments.place();
    let mut printer = Printer::new(arguments.json);
    if let Some(folder) = &arguments.documents {
        return write_manual(folder);
    }
    if let Some(line) = &arguments.complete {
        complete::print(&place, line);
        return ExitCode::SUCCESS;
    }
    if let Some(code) = import::run(&arguments.command) {
        return code;
    }
    let result = if let Some(("top", words)) = first_of(&arguments.command) {
        top::run(words, place, arguments.json, &mut printer)
    } else {
        talk(&arguments, &place, &mut printer)
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            printer.failure(&failure);
            match failure {
                Failure::Refused(_) | Failure::Told => ExitCode::from(1),
                Failure::Closed => ExitCode::SUCCESS,
                Failure::Interrupted | Failure::PagerLeft => ExitCode::from(130),
                Failure::Unreachable(_) => ExitCode::from(3),
            }
        }
    }
}

/// The manual page `quiverctl(1)`.
fn write_manual(folder: &Path) -> ExitCode {
    match clap_mangen::Man::new(Arguments::command()).generate_to(folder) {
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("quiverctl: {}: {error}", folder.display());
            ExitCode::FAILURE
        }
    }
}

/// The first word, and the others.
fn first_of(words: &[String]) -> Option<(&str, &[String])> {
    words.split_first().map(|(first, rest)| (first.as_str(), rest))
}

/// Commands for the router.
fn talk(arguments: &Arguments, place: &Place, printer: &mut Printer) -> Result<(), Failure> {
    let mut connection = Connection::open(place)?;
    if let Some(line) = document::line_of(&arguments.command) {
        connection.command(&line, printer)
    } else if !arguments.command.is_empty() {
        exec::command(&mut connection, &line_of(&arguments.command), printer)
    } else if stdin().is_terminal() {
        session::run(connection, place, printer)
    } else {
        let input = BufReader::with_capacity(pipe::PIECE_BYTES, stdin());
        pipe::run(&mut connection, input, pipe::STDIN, arguments.keep_going, printer).map(|_| ())
    }
}

/// One argument is a whole command; several are its words, as the shell split them.
fn line_of(words: &[String]) -> String {
    match words {
        [line] => line.clone(),
        words => {
            let is_plain =
                |word: &str| matches!(word, "?" | "{" | "}") || word.contains(['{', '}']);
            let quote = |word: &String| if is_plain(word) { word.clone() } else { quoted(word) };
            words.iter().map(quote).collect::<Vec<_>>().join(" ")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_the_shell_stay_words_of_the_command() {
        let line =
            |words: &[&str]| line_of(&words.iter().map(|w| w.to_string()).collect::<Vec<_>>());
        assert_eq!(line(&["show run"]), "show run");
        assert_eq!(line(&["show", "interface", "two words"]), "show interface \"two words\"");
        assert_eq!(
            line(&["packet-generator", "new", "{", "name", "x", "}"]),
            "packet-generator new { name x }"
        );
        assert_eq!(line(&["show", "?"]), "show ?");
    }

    #[test]
    fn the_arguments_are_declared_without_a_fault() {
        Arguments::command().debug_assert();
    }
}
