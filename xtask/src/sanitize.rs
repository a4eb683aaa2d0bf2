//! Crates with unsafe code under AddressSanitizer, which comes with a nightly toolchain only.

use std::collections::BTreeSet;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result};

use crate::checks::unsafe_files;
use crate::metadata::{Member, members, root};

/// The toolchain that has it.
const TOOLCHAIN: &str = "+nightly";
/// Where the instrumented tests are built, apart from all others.
const BUILD_DIR: &str = "target/sanitize";

/// Run the tests of every crate with unsafe code under AddressSanitizer.
pub fn run(only: &[String]) -> Result<ExitCode> {
    let Some(triple) = nightly_host() else {
        println!(
            "skipped: AddressSanitizer wants a nightly toolchain (rustup toolchain install \
             nightly); nothing was checked"
        );
        return Ok(ExitCode::SUCCESS);
    };
    let mut failed = Vec::new();
    for member in with_unsafe_code(only)? {
        println!("{}: tests under AddressSanitizer", member.name);
        let status = Command::new("cargo")
            .args([TOOLCHAIN, "test", "--quiet", "--target", &triple, "-p", &member.name])
            .args(["--lib", "--tests"])
            .env("RUSTFLAGS", "-Zsanitizer=address")
            .env("CARGO_TARGET_DIR", BUILD_DIR)
            // Arguments of system calls on purpose wrong are no leaks; threads of drivers outlive a
            // test.
            .env("ASAN_OPTIONS", "detect_leaks=0")
            .env_remove("RUSTUP_TOOLCHAIN")
            .current_dir(root())
            .status()
            .context("cargo test")?;
        if !status.success() {
            failed.push(member.name.clone());
        }
    }
    if failed.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    println!("tests fail under AddressSanitizer in {}", failed.join(", "));
    Ok(ExitCode::FAILURE)
}

/// The nightly compiler's triple, where it is installed.
fn nightly_host() -> Option<String> {
    let mut rustc = Command::new("rustc");
    let output = rustc.args([TOOLCHAIN, "-vV"]).env_remove("RUSTUP_TOOLCHAIN").output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().find_map(|line| line.strip_prefix("host: ")).map(str::to_owned)
}

/// The crates whose files are on the list of unsafe code; of them those that are named, if some
/// are.
fn with_unsafe_code(only: &[String]) -> Result<Vec<Member>> {
    let files: BTreeSet<&str> = unsafe_files().collect();
    let has_some = |member: &Member| {
        files.iter().any(|file| std::path::Path::new(file).starts_with(&member.folder))
    };
    let wanted = |member: &Member| only.is_empty() || only.contains(&member.name);
    Ok(members()?.into_iter().filter(|member| has_some(member) && wanted(member)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_with_unsafe_code_belongs_to_a_crate_that_is_checked() {
        let members = with_unsafe_code(&[]).expect("members");
        for file in unsafe_files() {
            assert!(
                members.iter().any(|member| std::path::Path::new(file).starts_with(&member.folder)),
                "{file}"
            );
        }
        assert!(members.len() >= 5, "{members:?}");
    }
}
