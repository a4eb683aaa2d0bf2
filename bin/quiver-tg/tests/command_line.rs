//! The generator's command line as a user types it, where no generator runs.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn generator(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_quiver-tg")).args(arguments).output().expect("starts")
}

/// What a call that succeeds prints.
fn answer(arguments: &[&str]) -> String {
    let output = generator(arguments);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{arguments:?}: {errors}");
    String::from_utf8(output.stdout).expect("text")
}

/// What a call that fails says.
fn refusal(arguments: &[&str]) -> String {
    let output = generator(arguments);
    assert_eq!(output.status.code(), Some(1), "{arguments:?}");
    assert!(output.stdout.is_empty(), "{arguments:?} prints a result beside its error");
    String::from_utf8(output.stderr).expect("text")
}

/// A file that is removed at the end.
struct File(PathBuf);

impl File {
    fn new(name: &str, text: &str) -> File {
        let path = std::env::temp_dir().join(format!("{name}-{}.yaml", std::process::id()));
        std::fs::write(&path, text).expect("written");
        File(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().expect("text")
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
fn every_ready_profile_can_be_checked() {
    let list = answer(&["profile", "list"]);
    let (profiles, _) = list.split_once("\nParameters").expect("parameters follow");
    let names: Vec<&str> =
        profiles.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert!(names.len() > 20, "{names:?}");
    for name in names {
        let profile = File::new(name, &answer(&["profile", "show", name]));
        let said = answer(&["check", profile.path()]);
        assert!(said.contains("stream 0"), "{name}: {said}");
    }
}

#[test]
fn an_error_names_the_file_and_the_line() {
    let profile = File::new("malformed", "streams: 3\n");
    let said = refusal(&["check", profile.path()]);
    assert!(said.contains(&format!("{}:1:", profile.path())), "{said}");
    let absent = Path::new(env!("CARGO_TARGET_TMPDIR")).join("absent.yaml");
    let said = refusal(&["run", absent.to_str().expect("text")]);
    assert!(said.contains("absent.yaml cannot be read"), "{said}");
}

#[test]
fn a_generator_that_does_not_run_is_said_to() {
    let socket = Path::new(env!("CARGO_TARGET_TMPDIR")).join("absent.sock");
    let said = refusal(&["ctl", "--socket", socket.to_str().expect("text"), "help"]);
    assert!(said.contains("there is no such socket") && said.contains("quiver-tg serve"), "{said}");
}
