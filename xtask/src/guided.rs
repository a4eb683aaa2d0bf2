//! The targets of `fuzz/` under libFuzzer, guided by coverage, with the stable compiler: its own
//! pass counts edges and comparisons, and the crate `libfuzzer-sys` brings the engine.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, ensure};

use crate::metadata::root;

/// The targets, as the crate `quiver-fuzz` lists them.
pub const TARGETS: [&str; 5] = ["headers", "messages", "files", "commands", "graph"];
/// Where the instrumented programs are built, apart from all others.
const BUILD_DIR: &str = "target/fuzz";
/// Counters for edges, their places, and the operands of comparisons (LLVM's SanitizerCoverage);
/// our own bugs are looked for, so that assertions and overflow checks are on.
const FLAGS: [&str; 7] = [
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Cdebug-assertions",
    "-Coverflow-checks",
];
/// The longest input, bytes.
const INPUT_BYTES_MAX: u32 = 2048;
/// An input that takes longer hangs.
const INPUT_SECONDS_MAX: u32 = 30;
/// Memory of one program; a target that takes more has a leak or no bound.
const MEMORY_MIB_MAX: u32 = 4096;

/// Run targets for `seconds` each, and keep what reached more code.
pub fn run(targets: &[String], seconds: u64) -> Result<ExitCode> {
    for target in targets {
        ensure!(
            TARGETS.contains(&target.as_str()),
            "there is no target {target}: {}",
            TARGETS.join(", ")
        );
    }
    let chosen =
        TARGETS.iter().filter(|t| targets.is_empty() || targets.iter().any(|other| other == *t));
    let triple = host()?;
    build(&triple)?;
    for target in chosen {
        println!("{target}: libFuzzer for {seconds} s");
        let (corpus, found) = (folder("fuzz/corpus", target)?, folder("out/fuzz", target)?);
        let artifacts = folder("fuzz/artifacts", target)?;
        let limits = [
            format!("-artifact_prefix={}/", artifacts.display()),
            format!("-max_total_time={seconds}"),
            format!("-max_len={INPUT_BYTES_MAX}"),
            format!("-timeout={INPUT_SECONDS_MAX}"),
            format!("-rss_limit_mb={MEMORY_MIB_MAX}"),
            "-print_final_stats=1".to_owned(),
        ];
        // What is found is written to the first folder; the others are read.
        let status = program(&triple, target).args(&limits).args([&found, &corpus]).status();
        if !status.context("libFuzzer")?.success() {
            println!("{target}: a fault. Each input below {} replays one:", artifacts.display());
            println!("  {} INPUT", path(&triple, target).display());
            return Ok(ExitCode::FAILURE);
        }
        merge(&triple, target, &corpus, &found)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Take over into the corpus the fewest inputs that reach all the code that is reached.
fn merge(triple: &str, target: &str, corpus: &Path, found: &Path) -> Result<()> {
    let merged = folder("out/fuzz", &format!("{target}-merged"))?;
    fs::remove_dir_all(&merged)?;
    fs::create_dir(&merged)?;
    let status = program(triple, target)
        .args(["-merge=1", "-use_value_profile=0"])
        .args([&merged, &corpus.to_owned(), &found.to_owned()])
        .stderr(Stdio::null())
        .status()
        .context("libFuzzer's merge")?;
    ensure!(status.success(), "{target}: the corpus could not be merged");
    fs::remove_dir_all(corpus)?;
    fs::create_dir(corpus)?;
    let mut count = 0;
    for entry in fs::read_dir(&merged)? {
        let entry = entry?;
        fs::copy(entry.path(), corpus.join(entry.file_name()))?;
        count += 1;
    }
    println!("{target}: {count} inputs are kept in {}", corpus.display());
    Ok(())
}

fn build(triple: &str) -> Result<()> {
    let status = Command::new(env!("CARGO"))
        .args([
            "build",
            "--quiet",
            "--release",
            "-p",
            "quiver-fuzz",
            "--features",
            "guided",
            "--target",
            triple,
        ])
        .env("RUSTFLAGS", FLAGS.join(" "))
        .env("CARGO_TARGET_DIR", BUILD_DIR)
        // Link-time optimisation would merge the counters of functions away.
        .env("CARGO_PROFILE_RELEASE_LTO", "off")
        .env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "2")
        .env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16")
        .current_dir(root())
        .status()
        .context("cargo build")?;
    ensure!(status.success(), "the targets do not build");
    Ok(())
}

/// The compiler's own triple. With it named, build scripts and macros are built without the
/// counters.
fn host() -> Result<String> {
    let output = Command::new("rustc").arg("-vV").current_dir(root()).output().context("rustc")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).context("rustc does not say its host")
}

fn path(triple: &str, target: &str) -> PathBuf {
    Path::new(BUILD_DIR).join(triple).join("release").join(target)
}

fn program(triple: &str, target: &str) -> Command {
    let mut command = Command::new(root().join(path(triple, target)));
    command.current_dir(root());
    command
}

fn folder(place: &str, target: &str) -> Result<PathBuf> {
    let inside = Path::new(place).join(target);
    fs::create_dir_all(root().join(&inside))?;
    Ok(root().canonicalize()?.join(inside))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_target_has_a_program_and_a_corpus() {
        let list = fs::read_to_string(root().join("fuzz/src/lib.rs")).expect("the list of targets");
        for target in TARGETS {
            assert!(list.contains(&format!("(\"{target}\", {target}::run)")), "{target}");
            assert!(root().join(format!("fuzz/targets/{target}.rs")).is_file(), "{target}");
            assert!(root().join(format!("fuzz/corpus/{target}")).is_dir(), "{target}");
        }
        let listed = list.matches("::run)").count();
        assert_eq!(listed, TARGETS.len(), "xtask/src/guided.rs lists all targets");
    }
}
