//! docs/reference, written by the router from its own declarations.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::metadata::root;

/// Page, and what `quiverd --reference` calls it.
const PAGES: [(&str, &str); 3] = [
    ("docs/reference/cli.md", "cli"),
    ("docs/reference/startup.md", "startup"),
    ("docs/reference/counters.md", "counters"),
];

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
    for (file, page) in PAGES {
        fs::write(root().join(file), render(page)?)?;
    }
    Ok(())
}

/// Pages that are not what the router would write now.
pub fn stale() -> Result<Vec<String>> {
    let mut faults = Vec::new();
    for (file, page) in PAGES {
        if fs::read_to_string(root().join(file)).ok().as_deref() != Some(render(page)?.as_str()) {
            faults.push(format!("{file} is not up to date: `make reference` writes it"));
        }
    }
    Ok(faults)
}
