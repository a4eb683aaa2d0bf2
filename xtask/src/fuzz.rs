//! The property tests, which are the fuzz targets, for longer: the test binaries that hold some run
//! again and again, with many cases and fresh seeds each time.

use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::checks::sources;
use crate::metadata::{Member, members, root};

/// Cases of each property in one round; rounds go on, with fresh seeds, until the time is up.
const CASES: &str = "1000";
/// What a file with properties contains.
const MARKS: [&str; 2] = ["proptest!", "bolero::check!"];

/// Run the properties of every crate for `seconds` each; stop at the first that does not hold.
pub fn run(seconds: u64) -> Result<ExitCode> {
    let sources = sources()?;
    for member in members()?.iter().filter(|m| !m.folder.starts_with("xtask")) {
        let targets = targets(member, &sources)?;
        if targets.is_empty() {
            continue;
        }
        println!("{}: {} for {seconds} s", member.name, targets.join(" "));
        let deadline = Instant::now() + Duration::from_secs(seconds);
        let mut rounds = 0;
        while rounds == 0 || Instant::now() < deadline {
            let status = Command::new(env!("CARGO"))
                .args(["test", "--quiet", "--release", "-p", &member.name])
                .args(&targets)
                .env("PROPTEST_CASES", CASES)
                .env("BOLERO_RANDOM_ITERATIONS", CASES)
                .current_dir(root())
                .status()
                .context("cargo test")?;
            if !status.success() {
                println!("{}: a property does not hold; the failing case is above", member.name);
                return Ok(ExitCode::FAILURE);
            }
            rounds += 1;
        }
        println!("{}: {rounds} rounds", member.name);
    }
    Ok(ExitCode::SUCCESS)
}

/// The test binaries of a crate that hold properties, as arguments for cargo.
fn targets(member: &Member, sources: &[impl AsRef<Path>]) -> Result<Vec<String>> {
    let mut targets = Vec::new();
    for file in sources.iter().map(AsRef::as_ref).filter(|f| f.starts_with(&member.folder)) {
        let text = fs::read_to_string(root().join(file))?;
        if !MARKS.iter().any(|mark| text.contains(mark)) {
            continue;
        }
        let inside = file.strip_prefix(&member.folder)?;
        let target = if inside.starts_with("tests") { "--tests" } else { "--lib" };
        targets.push(target.to_owned());
    }
    targets.sort();
    targets.dedup();
    Ok(targets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crates_that_parse_have_properties_to_fuzz() {
        let sources = sources().expect("sources");
        for member in members().expect("members") {
            if ["quiver-wire", "quiver-control", "quiver-ip", "quiver-memif"]
                .contains(&member.name.as_str())
            {
                assert!(!targets(&member, &sources).expect("files").is_empty(), "{}", member.name);
            }
        }
    }
}
