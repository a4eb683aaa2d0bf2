//! Asks the router for its counters.

use quiver_screen::Ask;

use super::snapshot::{COMMANDS, Snapshot};
use crate::connection::{Connection, Failure, Place};

/// The router at a place, whether it is there or not.
pub struct Router {
    place: Place,
    connection: Option<Connection>,
}

impl Router {
    /// At this place.
    pub fn new(place: Place) -> Router {
        Router { place, connection: None }
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
            None => Connection::open(&self.place).map_err(words)?,
        };
        let answers = connection.answers(COMMANDS).map_err(words)?;
        self.connection = Some(connection);
        Snapshot::read(&answers)
            .ok_or_else(|| "the router's answers are not those of this version".into())
    }
}
