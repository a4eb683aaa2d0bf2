//! Asks the router for its counters.

use std::path::PathBuf;

use quiver_screen::Ask;

use super::snapshot::{COMMANDS, Snapshot};
use crate::connection::{Connection, Failure};

/// The router behind a socket, whether it is there or not.
pub struct Router {
    socket: PathBuf,
    connection: Option<Connection>,
}

impl Router {
    /// Behind this socket.
    pub fn new(socket: PathBuf) -> Router {
        Router { socket, connection: None }
    }
}

impl Ask<Snapshot> for Router {
    fn ask(&mut self) -> Result<Snapshot, String> {
        let words = |failure| match failure {
            Failure::Refused(error) => error["message"].as_str().unwrap_or("refused").to_owned(),
            Failure::Unreachable(why) => why,
            Failure::Told | Failure::Closed | Failure::Interrupted | Failure::PagerLeft => {
                "interrupted".to_owned()
            }
        };
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => Connection::open(&self.socket).map_err(words)?,
        };
        let answers = connection.answers(COMMANDS).map_err(words)?;
        self.connection = Some(connection);
        Snapshot::read(&answers)
            .ok_or_else(|| "the router's answers are not those of this version".into())
    }
}
