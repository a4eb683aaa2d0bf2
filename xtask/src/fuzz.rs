//! The property tests, which are the fuzz targets, for longer: every test whose name says that no
//! input panics or that two things are equal runs again and again with fresh seeds.

use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::metadata::{members, root};

/// Cases of each property in one round.
const CASES: &str = "20000";

/// Run the tests of every crate for `seconds` each; stop at the first failure.
pub fn run(seconds: u64) -> Result<ExitCode> {
    for member in members()?.iter().filter(|m| !m.folder.starts_with("xtask")) {
        let deadline = Instant::now() + Duration::from_secs(seconds);
        let mut rounds = 0;
        while rounds == 0 || Instant::now() < deadline {
            let status = Command::new(env!("CARGO"))
                .args([
                    "test",
                    "--quiet",
                    "--release",
                    "-p",
                    &member.name,
                    "--",
                    "propert",
                    "fuzz",
                    "any_",
                    "no_input",
                ])
                .env("PROPTEST_CASES", CASES)
                .env("BOLERO_RANDOM_ITERATIONS", CASES)
                .current_dir(root())
                .status()?;
            if !status.success() {
                println!("{}: a property does not hold; the failing case is above", member.name);
                return Ok(ExitCode::FAILURE);
            }
            rounds += 1;
        }
        println!("{}: {rounds} rounds of {CASES} cases", member.name);
    }
    Ok(ExitCode::SUCCESS)
}
