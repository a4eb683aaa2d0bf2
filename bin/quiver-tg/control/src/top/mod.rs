//! `quiver-tg top`: live counts and rates of a generator.

mod tables;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{anyhow, bail};
use quiver_control::client::{CallError, Connection, Peer};
use quiver_screen::{Ask, Choice, is_screen, show, speaks_utf8, text};
use serde_json::{Value as Json, json};

pub use tables::Picture;

/// The peer of `top` and `ctl`, for messages.
const GENERATOR: Peer = Peer {
    name: "generator",
    remedy: "start one with `quiver-tg run PROFILE` or `quiver-tg serve`",
    forbidden: "this user may not use it",
    other: "is it the socket of a router?",
};

/// The options of `quiver-tg top`.
pub struct Options {
    /// Where the generator is reached.
    pub socket: PathBuf,
    /// One picture, then end.
    pub once: bool,
    /// One picture as JSON.
    pub json: bool,
    /// Between two looks.
    pub interval: Duration,
    /// Only names that contain this.
    pub filter: String,
}

/// The generator behind a socket, whether it is there or not.
struct Generator {
    socket: PathBuf,
    connection: Option<Connection>,
}

impl Ask<Json> for Generator {
    fn ask(&mut self) -> Result<Json, String> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => Connection::open(&self.socket, GENERATOR)?,
        };
        match statistics(&mut connection) {
            Ok(statistics) => {
                self.connection = Some(connection);
                Ok(statistics)
            }
            // It is there, and waits for a profile.
            Err(CallError::Refused(error)) => {
                self.connection = Some(connection);
                Err(error["message"].as_str().unwrap_or("refused").to_owned())
            }
            Err(CallError::Unreachable(why)) => Err(why),
            Err(_) => Err("interrupted".to_owned()),
        }
    }
}

fn statistics(connection: &mut Connection) -> Result<Json, CallError<()>> {
    let mut result =
        connection.call("cli", json!({ "line": "show statistics" }), &mut |_, _| Ok(()))?;
    Ok(result["json"].take())
}

/// Show it until the user leaves, or once.
///
/// # Errors
/// When the terminal cannot be used, or, for one picture, when the generator cannot be reached.
pub fn top(options: Options) -> anyhow::Result<()> {
    let mut generator = Generator { socket: options.socket.clone(), connection: None };
    if !options.once && !options.json && is_screen() {
        let place = options.socket.display().to_string();
        show::<Picture>(generator, place, options.interval, options.filter)?;
        return Ok(());
    }
    let before = generator.ask().map_err(|why| anyhow!(why))?;
    std::thread::sleep(options.interval);
    let now = generator.ask().map_err(|why| anyhow!(why))?;
    let Some(picture) = quiver_screen::View::between(&before, &now) else {
        bail!("another profile was loaded meanwhile");
    };
    let picture: Picture = picture;
    let out = if options.json {
        format!("{:#}\n", json!(picture))
    } else {
        let choice = Choice { filter: options.filter, ..Choice::default() };
        text(&picture, &choice, speaks_utf8())
    };
    std::io::stdout().write_all(out.as_bytes())?;
    Ok(())
}

/// `quiver-tg ctl`: one command of a generator that runs; prints its answer.
///
/// # Errors
/// When the generator cannot be reached, or refuses the command.
pub fn control(socket: &Path, line: &str, as_json: bool) -> anyhow::Result<()> {
    let mut connection = Connection::open(socket, GENERATOR).map_err(|why| anyhow!(why))?;
    let mut out = std::io::stdout();
    let answer = |out: &mut std::io::Stdout, answer: &Json| match as_json {
        true if answer["json"].is_null() => Ok(()),
        true => writeln!(out, "{:#}", answer["json"]),
        false => out.write_all(answer["text"].as_str().unwrap_or_default().as_bytes()),
    };
    let result =
        connection.call("cli", json!({ "line": line }), &mut |method, params| match method {
            "output" => answer(&mut out, params),
            _ => Ok(()),
        });
    match result {
        Ok(result) => Ok(answer(&mut out, &result)?),
        Err(CallError::Refused(error)) => {
            bail!("{}", error["message"].as_str().unwrap_or("refused"))
        }
        Err(CallError::Unreachable(why)) => bail!(why),
        Err(CallError::Caller(error)) => Err(error.into()),
        Err(CallError::Interrupted) => bail!("interrupted"),
    }
}

#[cfg(test)]
mod tests;
