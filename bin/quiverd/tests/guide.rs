//! Every command that the guides show is one of the real router's.

use std::fs;
use std::path::{Path, PathBuf};

use quiver_testkit::{Router, Settings};
use quiverd::features;

fn guides() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide");
    let files =
        fs::read_dir(folder).expect("docs/guide").map(|entry| entry.expect("a file").path());
    files.filter(|path| path.extension().is_some_and(|end| end == "md")).collect()
}

/// Lines of code blocks that the router is told: behind its prompt, in blocks of its language, and
/// in blocks that begin with the making of an interface.
fn commands(text: &str) -> Vec<String> {
    let mut out = Vec::new();
    for block in text.split("```").skip(1).step_by(2) {
        let (kind, block) = block.split_once('\n').unwrap_or((block, ""));
        let is_script = kind.starts_with("quiver")
            || ["create host-interface ", "create tap ", "create loopback "]
                .iter()
                .any(|s| block.starts_with(s));
        let mut lines = block.lines().peekable();
        while let Some(line) = lines.next() {
            // What is shown to be refused, with the word that is wrong.
            if lines.peek().is_some_and(|said| said.starts_with("error: ")) {
                continue;
            }
            if let Some(command) = line.strip_prefix("quiver# ") {
                out.push(command.to_owned());
            } else if is_script && line.starts_with(|c: char| c.is_ascii_lowercase()) {
                out.push(line.to_owned());
            }
        }
    }
    out
}

#[test]
fn every_command_of_the_guides_is_one_of_the_router() {
    let router = Router::whole(Settings::default(), features::register);
    let known = router.commands();
    let known = known.borrow();
    let (mut count, mut refused) = (0, Vec::new());
    for guide in guides() {
        let text = fs::read_to_string(&guide).expect("a guide");
        for line in commands(&text) {
            count += 1;
            if let Err(refusal) = known.parse(&(), &line, |_| ()) {
                refused.push(format!("{}: {line}: {refusal}", guide.display()));
            }
        }
    }
    assert!(count > 60, "{count} commands found");
    assert!(refused.is_empty(), "{refused:#?}");
}
