//! docs/reference, written by the router from its own declarations, and the list of its tests.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::metadata::root;
use crate::tests_page;

/// Page, and what `quiverd --reference` calls it.
const PAGES: [(&str, &str); 5] = [
    ("docs/reference/cli.md", "cli"),
    ("docs/reference/startup.md", "startup"),
    ("docs/reference/counters.md", "counters"),
    ("docs/reference/openrpc.json", "openrpc"),
    ("docs/reference/configuration.schema.json", "schema"),
];

/// The list of test cases.
const TESTS: &str = "docs/reference/tests.md";

/// Every page and what it should say.
fn pages() -> impl Iterator<Item = Result<(&'static str, String)>> {
    let declared = PAGES.into_iter().map(|(file, page)| Ok((file, render(page)?)));
    declared.chain(std::iter::once_with(|| Ok((TESTS, tests_page::render()?))))
}

fn render(page: &str) -> Result<String> {
    let output = Command::new(env!("CARGO"))
        .args(["run", "--quiet", "-p", "quiverd", "--", "--reference", page])
        .current_dir(root())
        .output()
        .context("quiverd --reference")?;
    if !output.status.success() {
        bail!("quiverd --reference {page}: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// Write all pages.
pub fn write() -> Result<()> {
    for page in pages() {
        let (file, text) = page?;
        fs::write(root().join(file), text)?;
    }
    Ok(())
}

/// Pages that are not what the router would write now.
pub fn stale() -> Result<Vec<String>> {
    let mut faults = Vec::new();
    for page in pages() {
        let (file, text) = page?;
        if fs::read_to_string(root().join(file)).ok().as_deref() != Some(text.as_str()) {
            faults.push(format!("{file} is not up to date: `make reference` writes it"));
        }
    }
    Ok(faults)
}
