//! The commands for a whole configuration.

use super::Purpose;
use crate::grammar::{Action, Command, Commands};
use crate::names::Names;

const GROUP: &str = "Configuration";

/// Words that several of them have.
const CONFIRM: (&str, &str) =
    ("confirm", "take it back after this time unless `configuration confirm` is said");
const MESSAGE: (&str, &str) = ("message", "what the history says about it");
const GENERATION: (&str, &str) = (
    "generation",
    "only if the configuration is in this state still, as `show configuration` or a difference \
     said",
);

const FORMAT: (&str, &str) = ("format", "its language; YAML when its name ends with .yaml or .yml");

pub(crate) fn register<S: Names + 'static>(commands: &mut Commands<S>) {
    add_running(commands);
    add_files(commands);
    add_changes(commands);
    add_shows(commands);
}

/// The configuration that runs.
fn add_running<S: Names + 'static>(commands: &mut Commands<S>) {
    commands.add(
        Command::new("show running-config [yaml] [secrets]")
            .group("Session")
            .help("Show the commands that make this router what it is")
            .details(
                "Executed on a fresh router, they make the same one. Secrets are hidden \
                 unless asked for; a configuration with hidden ones is refused where they \
                 stand. As YAML it is a document that `configuration apply` takes, too; \
                 docs/reference/configuration.schema.json describes it, and its JSON is the \
                 same tree.",
            )
            .word("yaml", "as a YAML document")
            .word("secrets", "with the secrets, to be kept in a file that only its owner can read")
            .action(Action::RunningConfig),
    );
}

/// Commands about a configuration in a file.
fn add_files<S: Names + 'static>(commands: &mut Commands<S>) {
    commands.add(
        Command::new("configuration check <file:path> [format <format:commands|yaml>]")
            .group(GROUP)
            .help("Tell all mistakes of a file that says what this router is to be")
            .details(
                "The file has the commands of `show running-config secrets`, in an order in which \
                 they can be executed, or is a YAML document as that of `show running-config yaml \
                 secrets`, in any order. What does not stand in it is not to be there. Each \
                 interface that a line names is there, or a line before makes it.",
            )
            .word(FORMAT.0, FORMAT.1)
            .example("configuration check /etc/quiver/router.cli")
            .action(Action::Document(Purpose::Check)),
    );
    commands.add(
        Command::new("configuration diff <file:path> [format <format:commands|yaml>]")
            .group(GROUP)
            .help("Show what this router has and a file does not say (-), and what is new (+)")
            .details("In JSON, `commands` are those that `configuration apply` executes.")
            .example("configuration diff /etc/quiver/router.cli")
            .action(Action::Document(Purpose::Diff)),
    );
    commands.add(
        Command::new(
            "configuration apply <file:path> {[confirm <:seconds>] [message <:text>] \
             [generation <:word>] [format <format:commands|yaml>]}",
        )
        .group(GROUP)
        .help("Make this router what a file says")
        .details(
            "The file is checked whole. Then the fewest commands that lead there are executed: \
             what is in both stays untouched, with its traffic, and a route or local SID that \
             changes is replaced. When one of them is refused, what was done before is taken \
             back. The text of the file is kept as a version, and the router starts with it. With \
             `confirm` it returns to what was before unless it is confirmed in that time, also \
             when its author's session ended; a restart returns at once.",
        )
        .word(CONFIRM.0, CONFIRM.1)
        .word(MESSAGE.0, MESSAGE.1)
        .word(GENERATION.0, GENERATION.1)
        .word(FORMAT.0, FORMAT.1)
        .example("configuration apply /etc/quiver/router.cli")
        .example("configuration apply router.cli confirm 60s message \"second uplink\"")
        .action(Action::Document(Purpose::Apply)),
    );
}

/// Commands that make versions and choose among them.
fn add_changes<S: Names + 'static>(commands: &mut Commands<S>) {
    commands.add(
        Command::new("configuration confirm")
            .group(GROUP)
            .help("Keep the version that waits for its confirmation")
            .example("configuration confirm")
            .action(Action::Document(Purpose::Confirm)),
    );
    commands.add(
        Command::new(
            "configuration rollback {[<version:u32>] [confirm <:seconds>] [message <:text>] \
             [generation <:word>]}",
        )
        .group(GROUP)
        .help("Make this router what a version says")
        .details(
            "Without a number: take the version back that waits for its confirmation, or return \
             to the version before the saved one. The version is applied as a file is, and is a \
             new version of its own.",
        )
        .word("version", "the number of a version, of `configuration history`")
        .word(CONFIRM.0, CONFIRM.1)
        .word(MESSAGE.0, MESSAGE.1)
        .word(GENERATION.0, GENERATION.1)
        .example("configuration rollback")
        .example("configuration rollback 7 confirm 60s")
        .action(Action::Document(Purpose::Rollback)),
    );
    commands.add(
        Command::new("configuration save [message <:text>]")
            .group(GROUP)
            .help("Keep what runs as a version, with which the router starts")
            .details(
                "What commands changed and nobody saved is lost when the router ends. What \
                 `configuration apply` executed is saved.",
            )
            .word(MESSAGE.0, MESSAGE.1)
            .example("configuration save message \"two more routes\"")
            .action(Action::Document(Purpose::Save)),
    );
}

/// Commands that look.
fn add_shows<S: Names + 'static>(commands: &mut Commands<S>) {
    commands.add(
        Command::new("show configuration")
            .group(GROUP)
            .help("Show which version runs, what waits for its confirmation, and what is not saved")
            .example("show configuration")
            .action(Action::Document(Purpose::Status)),
    );
    commands.add(
        Command::new("show configuration history")
            .also("configuration history")
            .group(GROUP)
            .help("Show the versions that are kept, the newest first")
            .details(
                "`saved` is the version that the router starts with, `pending` one that waits for \
                 its confirmation, `returned` one that was not confirmed.",
            )
            .example("configuration history")
            .action(Action::History),
    );
    commands.add(
        Command::new("show configuration version <version:u32> [secrets]")
            .also("configuration show version <version:u32> [secrets]")
            .group(GROUP)
            .help("Show a version as it was applied, comments too")
            .word("version", "its number")
            .word("secrets", "with the secrets")
            .example("configuration show version 7")
            .action(Action::ShowVersion),
    );
    commands.add(
        Command::new("configuration diff version <version:u32> [<other:u32>]")
            .group(GROUP)
            .help("Show how a version differs from what runs, or from another version")
            .details(
                "With one number: what this router has and the version does not say (-), and what \
                 is new (+). With two: what the first says and the second does not, and what is \
                 new. In JSON, `commands` are those that lead there.",
            )
            .word("version", "its number")
            .word("other", "the version that it is compared with")
            .example("configuration diff version 7")
            .example("configuration diff version 7 9")
            .action(Action::Document(Purpose::DiffVersion)),
    );
}
