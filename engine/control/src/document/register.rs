//! The commands for a whole configuration in a file.

use crate::grammar::{Action, Command, Commands};
use crate::names::Names;
use crate::script::document::Purpose;

impl<S: Names + 'static> Commands<S> {
    /// Commands for a whole configuration in a file.
    pub(crate) fn add_documents(&mut self) {
        self.add(
            Command::new("configuration check <file:path> [format <format:commands|yaml>]")
                .group("Session")
                .help("Tell all mistakes of a file that says what this router is to be")
                .details(
                    "The file has the commands of `show running-config secrets`, in an order in \
                     which they can be executed, or is a YAML document as that of `show \
                     running-config yaml secrets`, in any order. What does not stand in it is not \
                     to be there.",
                )
                .word("format", "its language; YAML when its name ends with .yaml or .yml")
                .example("configuration check /etc/quiver/router.cli")
                .action(Action::Document(Purpose::Check)),
        );
        self.add(
            Command::new("configuration diff <file:path> [format <format:commands|yaml>]")
                .group("Session")
                .help("Show what this router has and a file does not say (-), and what is new (+)")
                .details("In JSON, `commands` are those that `configuration apply` executes.")
                .example("configuration diff /etc/quiver/router.cli")
                .action(Action::Document(Purpose::Diff)),
        );
        self.add(
            Command::new("configuration apply <file:path> [format <format:commands|yaml>]")
                .group("Session")
                .help("Make this router what a file says")
                .details(
                    "The file is checked whole. Then the fewest commands that lead there are \
                     executed: what is in both stays untouched, with its traffic. When one of \
                     them is refused, what was done before is taken back.",
                )
                .example("configuration apply /etc/quiver/router.cli")
                .action(Action::Document(Purpose::Apply)),
        );
    }
}
