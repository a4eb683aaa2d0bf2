//! The commands that sessions and scripts have.

use crate::grammar::{Action, Command, Commands};
use crate::names::Names;
use crate::output::Output;

impl<S: Names + 'static> Commands<S> {
    /// Declare them.
    pub(crate) fn add_session(&mut self) {
        self.add(
            Command::new("echo [<text:rest>]")
                .group("Session")
                .help("Print a text")
                .example("echo the routes are in place")
                .run(|_, args| Ok(Output::text(format!("{}\n", args.or("text", "")?)))),
        );
        self.add(
            Command::new("comment [<text:rest>]")
                .group("Session")
                .help("Do nothing; the text is for those who read the file")
                .details("What follows a # is a comment, too.")
                .example("comment routes of the upstream")
                .run(|_, _| Ok(Output::none())),
        );
        self.add(
            Command::new("history")
                .group("Session")
                .help("List the commands of this session")
                .details("A session of quiverctl, or on the plain socket, keeps its own.")
                .example("history")
                .run(|_, _| {
                    Ok(Output::text("only a session has a history: quiverctl, or the plain socket"))
                }),
        );
        self.add(
            Command::new("quit")
                .also("exit")
                .also("q")
                .group("Session")
                .help("End the session; in a file, execute nothing more of it")
                .example("quit")
                .action(Action::Quit),
        );
    }
}
