//! docs/reference, written by the router from its own declarations, and the list of its tests.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

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
fn pages() -> Result<impl Iterator<Item = Result<(&'static str, String)>>> {
    let router = router()?;
    let declared = PAGES.into_iter().map(move |(file, page)| Ok((file, render(&router, page)?)));
    Ok(declared.chain(std::iter::once_with(|| Ok((TESTS, tests_page::render()?)))))
}

/// The router, built as `cargo test --workspace` builds it: for `-p quiverd` alone cargo chooses
/// other features of libraries, and nearly every crate would be built twice.
fn router() -> Result<PathBuf> {
    let status = Command::new(env!("CARGO"))
        .args(["test", "--quiet", "--workspace", "--test", "quiverd-tests", "--no-run"])
        .current_dir(root())
        .status()
        .context("cargo test --no-run")?;
    if !status.success() {
        bail!("quiverd is not built");
    }
    // Programs of tests are one folder below the others.
    let own = env::current_exe()?;
    let folder = own.parent().context("the folder of programs")?;
    let folder = if folder.ends_with("deps") { folder.parent().unwrap_or(folder) } else { folder };
    Ok(folder.join("quiverd"))
}

fn render(router: &Path, page: &str) -> Result<String> {
    let output = Command::new(router)
        .args(["--reference", page])
        .output()
        .with_context(|| format!("{} --reference", router.display()))?;
    if !output.status.success() {
        bail!("quiverd --reference {page}: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// Write all pages.
pub fn write() -> Result<()> {
    for page in pages()? {
        let (file, text) = page?;
        fs::write(root().join(file), text)?;
    }
    Ok(())
}

/// Pages that are not what the router would write now.
pub fn stale() -> Result<Vec<String>> {
    let mut faults = Vec::new();
    for page in pages()? {
        let (file, text) = page?;
        if fs::read_to_string(root().join(file)).ok().as_deref() != Some(text.as_str()) {
            faults.push(format!("{file} is not up to date: `make reference` writes it"));
        }
    }
    Ok(faults)
}
