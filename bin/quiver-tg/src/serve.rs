//! `quiver-tg serve`: one JSON object a line, requests on stdin, replies on stdout.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::ExitCode;
use std::rc::Rc;

use quiver_core::Engine;
use quiver_core::reactor::Interest;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::generator::{Generator, Nobody, Surroundings};
use crate::request::Measure;
use crate::session;

/// Bytes of a request at most.
const REQUEST_BYTES_MAX: usize = 1 << 16;
/// Requests that wait at most.
const REQUESTS_MAX: usize = 64;
/// File descriptor of standard input.
const STDIN: i32 = 0;

/// A line from the other side.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "lowercase")]
enum Request {
    /// Measure once.
    Measure(Measure),
    /// End; `false` is nonsense.
    Stop(bool),
}

/// What has been read and not answered.
#[derive(Default)]
struct Inbox {
    lines: VecDeque<String>,
    rest: Vec<u8>,
    is_closed: bool,
}

impl Inbox {
    fn take_in(&mut self, bytes: &[u8]) {
        self.rest.extend_from_slice(bytes);
        while let Some(end) = self.rest.iter().position(|b| *b == b'\n') {
            let line: Vec<u8> = self.rest.drain(..=end).collect();
            self.lines.push_back(String::from_utf8_lossy(&line).into_owned());
        }
        // Who sends without end or without waiting for answers is not understood any more.
        self.is_closed |= self.rest.len() > REQUEST_BYTES_MAX || self.lines.len() > REQUESTS_MAX;
    }
}

/// Serve until the other side says stop, closes its end, or a signal comes.
pub fn serve(profile: &Path, core: Option<usize>) -> ExitCode {
    let mut session = match session::open(profile, core) {
        Ok(session) => session,
        Err(error) => {
            let _ = say(&json!({"error": format!("{error:#}")}));
            return ExitCode::FAILURE;
        }
    };
    let ready = json!({"ready": {
        "version": env!("CARGO_PKG_VERSION"),
        "ports": session.port_count(),
        "streams": session.stream_count(),
    }});
    let quit = session.surroundings().quit.clone();
    let inbox = watch_stdin(session.engine(), quit);
    match say(&ready).and_then(|()| answer_all(&mut session, &inbox)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("standard output: {error}");
            ExitCode::FAILURE
        }
    }
}

fn say(reply: &Value) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{reply}")?;
    out.flush()
}

fn watch_stdin(engine: &mut Engine, quit: Rc<std::cell::Cell<bool>>) -> Rc<RefCell<Inbox>> {
    let inbox = Rc::new(RefCell::new(Inbox::default()));
    let (into, token) = (inbox.clone(), Rc::new(std::cell::Cell::new(None)));
    let own = token.clone();
    token.set(Some(engine.watch(STDIN, Interest::READ, move |engine| {
        let mut bytes = [0; REQUEST_BYTES_MAX];
        let mut inbox = into.borrow_mut();
        match io::stdin().lock().read(&mut bytes) {
            Ok(0) | Err(_) => inbox.is_closed = true,
            Ok(count) => inbox.take_in(&bytes[..count]),
        }
        if inbox.is_closed {
            // Requests that came before the end are still answered, unless one measures now.
            quit.set(inbox.lines.is_empty());
            if let Some(token) = own.get() {
                engine.unwatch(token);
            }
        }
    })));
    inbox
}

fn answer_all<S: Surroundings>(session: &mut Generator<S>, inbox: &RefCell<Inbox>) -> io::Result<()> {
    loop {
        let line = inbox.borrow_mut().lines.pop_front();
        match line {
            Some(line) if line.trim().is_empty() => {}
            Some(line) => {
                let (reply, is_over) = answer(session, &line);
                say(&reply)?;
                if is_over {
                    return Ok(());
                }
            }
            None if inbox.borrow().is_closed || session.is_interrupted() => return Ok(()),
            None => session.idle(),
        }
    }
}

fn answer<S: Surroundings>(session: &mut Generator<S>, line: &str) -> (Value, bool) {
    let refused = |why: String| (json!({"error": why}), false);
    match serde_json::from_str(line) {
        Ok(Request::Measure(request)) => match session.measure(&request, &mut Nobody) {
            Ok(report) => match serde_json::to_value(report) {
                Ok(report) => (report, false),
                Err(error) => refused(error.to_string()),
            },
            Err(error) => refused(format!("{error:#}")),
        },
        Ok(Request::Stop(true)) => (json!({"stopped": true}), true),
        Ok(Request::Stop(false)) => refused("stop is true or not sent".to_owned()),
        Err(error) => {
            refused(format!("request: {error}; it is {{\"measure\": {{…}}}} or {{\"stop\": true}}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_put_together_and_endless_ones_end_the_session() {
        let mut inbox = Inbox::default();
        inbox.take_in(b"{\"stop\"");
        assert!(inbox.lines.is_empty());
        inbox.take_in(b": true}\n\n");
        assert_eq!(inbox.lines.len(), 2);
        assert!(!inbox.is_closed);
        inbox.take_in(&vec![b'x'; REQUEST_BYTES_MAX + 1]);
        assert!(inbox.is_closed);
    }

    #[test]
    fn requests_are_what_the_lab_sends() {
        let line =
            r#"{"measure": {"rate_pps": 1000000.0, "duration_s": 0.5, "warmup_s": 0.05, "drain_s": 0.02}}"#;
        assert!(matches!(serde_json::from_str(line), Ok(Request::Measure(m)) if m.duration_s == 0.5));
        let line = r#"{"measure": {"rate_pps": "max", "duration_s": 0.5}}"#;
        assert!(matches!(serde_json::from_str(line), Ok(Request::Measure(_))));
        assert!(matches!(serde_json::from_str(r#"{"stop": true}"#), Ok(Request::Stop(true))));
        assert!(serde_json::from_str::<Request>(r#"{"begin": true}"#).is_err());
    }
}
