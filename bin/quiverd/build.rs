//! The commit that the program is built from, for `show version verbose`.

use std::process::Command;

fn main() {
    // A package is built without the repository; it says itself where it comes from.
    println!("cargo:rerun-if-env-changed=QUIVER_COMMIT");
    println!("cargo:rerun-if-env-changed=QUIVER_DATE");
    let commit = said("QUIVER_COMMIT", &["rev-parse", "--short=12", "HEAD"]);
    let date = said("QUIVER_DATE", &["show", "--no-patch", "--format=%cI", "HEAD"]);
    println!("cargo:rustc-env=QUIVER_COMMIT={commit}");
    println!("cargo:rustc-env=QUIVER_DATE={date}");
    if let Some(log) = git(&["rev-parse", "--path-format=absolute", "--git-path", "logs/HEAD"]) {
        println!("cargo:rerun-if-changed={log}");
    }
}

fn said(variable: &str, arguments: &[&str]) -> String {
    std::env::var(variable).ok().or_else(|| git(arguments)).unwrap_or_else(|| "unknown".to_owned())
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    Some(text.trim().to_owned()).filter(|text| output.status.success() && !text.is_empty())
}
