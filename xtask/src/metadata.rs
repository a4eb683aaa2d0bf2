//! What cargo knows of the workspace.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

/// A crate of ours.
#[derive(Clone, Debug)]
pub struct Member {
    /// Its name.
    pub name: String,
    /// Its folder, relative to the root.
    pub folder: PathBuf,
    /// Names of crates that it depends on, without those only for tests.
    pub dependencies: Vec<String>,
}

/// The project's root.
pub fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// All crates of the workspace.
pub fn members() -> Result<Vec<Member>> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--format-version", "1", "--offline"])
        .current_dir(root())
        .output()
        .context("cargo metadata")?;
    let metadata: Value =
        serde_json::from_slice(&output.stdout).context("cargo metadata's JSON")?;
    let root = root().canonicalize()?;
    let packages = metadata["packages"].as_array().context("packages")?;
    packages.iter().map(|package| member(package, &root)).collect()
}

fn member(package: &Value, root: &Path) -> Result<Member> {
    let manifest = Path::new(package["manifest_path"].as_str().context("manifest_path")?);
    let folder = manifest.parent().context("a folder")?.canonicalize()?;
    let dependencies = package["dependencies"].as_array().context("dependencies")?;
    Ok(Member {
        name: package["name"].as_str().context("name")?.to_owned(),
        folder: folder.strip_prefix(root)?.to_owned(),
        dependencies: dependencies
            .iter()
            .filter(|d| d["kind"].as_str() != Some("dev"))
            .filter_map(|d| Some(d["name"].as_str()?.to_owned()))
            .collect(),
    })
}
