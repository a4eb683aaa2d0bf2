//! A session at the terminal: history, completion by Tab, help by `?`, and Ctrl-C ends a command.

use std::cell::RefCell;
use std::env;
use std::fs;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustyline::completion::{Completer, Pair};
use rustyline::config::Configurer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::Validator;
use rustyline::{
    Cmd, CompletionType, ConditionalEventHandler, Context, Editor, Event, EventContext,
    EventHandler, Helper, KeyCode, KeyEvent, Modifiers, RepeatCount,
};
use serde_json::{Value as Json, json};

use crate::connection::{Connection, Failure, Place};
use crate::exec;
use crate::pager::Pager;
use crate::print::Printer;

const PROMPT: &str = "quiver# ";

/// Lines kept in the history file.
const HISTORY_LINES_MAX: usize = 2000;

type Shared = Rc<RefCell<Connection>>;

/// Read and execute commands until the user has enough.
pub fn run(connection: Connection, place: &Place, printer: &mut Printer) -> Result<(), Failure> {
    let unusable = |error: ReadlineError| {
        Failure::Unreachable(format!("the terminal cannot be used: {error}"))
    };
    let interrupted = Arc::new(AtomicBool::new(false));
    let _ = signal_hook::flag::register(signal_hook::consts::SIGINT, interrupted.clone());
    let connection: Shared = Rc::new(RefCell::new(connection));
    connection.borrow_mut().interrupted_by(interrupted.clone());
    let asked = Arc::new(AtomicBool::new(false));
    let mut editor: Editor<FromRouter, FileHistory> = Editor::new().map_err(unusable)?;
    editor.set_completion_type(CompletionType::List);
    let _ = editor.set_max_history_size(HISTORY_LINES_MAX);
    editor.set_helper(Some(FromRouter { connection: connection.clone() }));
    let question = KeyEvent(KeyCode::Char('?'), Modifiers::NONE);
    editor.bind_sequence(
        question,
        EventHandler::Conditional(Box::new(Question { asked: asked.clone() })),
    );
    let history = history_file();
    if let Some(history) = &history {
        let _ = editor.load_history(history);
    }
    let mut left = String::new();
    loop {
        let line = match editor.readline_with_initial(PROMPT, (&left, "")) {
            Ok(line) => line,
            Err(ReadlineError::Interrupted) => {
                left.clear();
                continue;
            }
            Err(ReadlineError::Eof) => break,
            Err(error) => return Err(unusable(error)),
        };
        left.clear();
        let rows = editor.dimensions().map_or(0, |(_, rows)| usize::from(rows));
        printer.page_by(if rows > 1 { Pager::of_user(rows) } else { None });
        interrupted.store(false, Ordering::SeqCst);
        let done = if asked.swap(false, Ordering::SeqCst) {
            let help = explain(&connection, &line, printer);
            left = line;
            help
        } else if matches!(line.trim(), "quit" | "exit" | "q") {
            break;
        } else if line.trim().is_empty() {
            Ok(())
        } else {
            if let Some(line) =
                without_secrets(&connection, &[&line]).and_then(|mut lines| lines.pop())
            {
                let _ = editor.add_history_entry(line);
            }
            match line.trim() {
                "history" => list(&connection, editor.history(), printer),
                line => exec::command(&mut connection.borrow_mut(), line, printer),
            }
        };
        printer.answered();
        if let Some(history) = &history {
            let _ = editor.append_history(history);
        }
        match done {
            Ok(()) => {}
            Err(Failure::Closed) => return Ok(()),
            Err(failure @ Failure::Refused(_)) => printer.failure(&failure),
            Err(failure) => {
                // Leaving cancels what runs; a router that was started again is found again.
                printer.failure(&failure);
                let mut fresh = Connection::open(place)?;
                fresh.interrupted_by(interrupted.clone());
                connection.replace(fresh);
            }
        }
    }
    Ok(())
}

/// Print what the session and those before it said.
fn list(connection: &Shared, history: &FileHistory, printer: &mut Printer) -> Result<(), Failure> {
    let lines: Vec<&String> = history.iter().collect();
    // The router knows which words are secrets; what it does not answer for is not listed.
    let known = lines.chunks(LINES_AT_ONCE).filter_map(|lines| without_secrets(connection, lines));
    let lines = known.flatten().enumerate();
    printer
        .text(&lines.map(|(index, line)| format!("{:5}  {line}\n", index + 1)).collect::<String>())
}

/// Lines that the router takes the secrets out of at a time.
const LINES_AT_ONCE: usize = 256;

/// The lines as they may be kept and shown, as the router says. `None`: it does not say.
fn without_secrets<T: AsRef<str>>(connection: &Shared, lines: &[T]) -> Option<Vec<String>> {
    let lines: Vec<&str> = lines.iter().map(AsRef::as_ref).collect();
    let answer = connection.borrow_mut().call(
        "history",
        json!({ "lines": lines }),
        &mut Printer::new(false),
    );
    let answer = answer.ok()?;
    answer["json"].as_array()?.iter().map(|line| line.as_str().map(str::to_owned)).collect()
}

/// Print what could stand at the end of the line.
fn explain(connection: &Shared, line: &str, printer: &mut Printer) -> Result<(), Failure> {
    let params = json!({"line": line, "cursor": line.len()});
    let found = connection.borrow_mut().call("complete", params, printer)?;
    let candidates = found["candidates"].as_array().cloned().unwrap_or_default();
    let text =
        |candidate: &Json, key: &str| candidate[key].as_str().unwrap_or_default().to_string();
    let width =
        candidates.iter().map(|c| text(c, "label").chars().count()).max().unwrap_or(0).max(5);
    let mut out = String::new();
    for candidate in &candidates {
        out += &format!("  {:width$}  {}\n", text(candidate, "label"), text(candidate, "help"));
    }
    if found["can_end"] == json!(true) {
        out += &format!("  {:width$}  the command may end here\n", "<end>");
    }
    if out.is_empty() {
        out = "  nothing fits here\n".into();
    }
    printer.text(&out)
}

/// `$XDG_STATE_HOME/quiver/history`, or below `~/.local/state`.
fn history_file() -> Option<PathBuf> {
    let state = env::var_os("XDG_STATE_HOME").map(PathBuf::from);
    let folder = state
        .or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".local/state")))?
        .join("quiver");
    fs::create_dir_all(&folder).ok()?;
    Some(folder.join("history"))
}

/// The key `?` asks for help; inside quotation marks it is a character.
struct Question {
    asked: Arc<AtomicBool>,
}

impl ConditionalEventHandler for Question {
    fn handle(
        &self,
        _: &Event,
        _: RepeatCount,
        _: bool,
        context: &EventContext<'_>,
    ) -> Option<Cmd> {
        let before = &context.line()[..context.pos()];
        if before.matches('"').count() % 2 == 1 || context.pos() < context.line().len() {
            return None;
        }
        self.asked.store(true, Ordering::SeqCst);
        Some(Cmd::AcceptLine)
    }
}

/// Asks the router what fits.
struct FromRouter {
    connection: Shared,
}

impl Completer for FromRouter {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        pos: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        let params = json!({"line": line, "cursor": pos});
        let mut silent = Printer::new(false);
        let Ok(found) = self.connection.borrow_mut().call("complete", params, &mut silent) else {
            return Ok((pos, Vec::new()));
        };
        let start = found["start"].as_u64().map_or(pos, |start| start.min(pos as u64) as usize);
        let candidates = found["candidates"].as_array().cloned().unwrap_or_default();
        let texts = candidates.iter().filter_map(|candidate| candidate["text"].as_str());
        let pair = |text: &str| Pair { display: text.to_string(), replacement: format!("{text} ") };
        Ok((start, texts.filter(|text| !text.is_empty()).map(pair).collect()))
    }
}

impl Hinter for FromRouter {
    type Hint = String;
}

impl Highlighter for FromRouter {}
impl Validator for FromRouter {}
impl Helper for FromRouter {}
