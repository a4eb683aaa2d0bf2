//! One router for one folder: a lock on the folder, and a file with the process number.

use std::fmt;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rustix::fs::{FlockOperation, flock};

/// Another router has the folder.
#[derive(Debug)]
pub struct Taken {
    folder: PathBuf,
    process: Option<String>,
}

impl fmt::Display for Taken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let process =
            self.process.as_deref().map_or(String::new(), |number| format!(" (process {number})"));
        write!(
            f,
            "another quiverd{process} has the folder {}: stop it, or give this one another folder \
             (unix {{ runtime-dir PATH }})",
            self.folder.display()
        )
    }
}

impl std::error::Error for Taken {}

/// The folder is this router's as long as this is held; the file of the process number goes with
/// it.
pub struct Instance {
    _folder: File,
    pidfile: Option<PathBuf>,
}

impl Drop for Instance {
    fn drop(&mut self) {
        if let Some(path) = &self.pidfile {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Lock the folder, which is made when it is not there.
fn lock(folder: &Path, pidfile: &Path) -> Result<File> {
    let failed = || format!("runtime-dir {}", folder.display());
    std::fs::create_dir_all(folder).with_context(failed)?;
    let file = File::open(folder).with_context(failed)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(rustix::io::Errno::WOULDBLOCK) => {
            let process = std::fs::read_to_string(pidfile).ok().map(|text| text.trim().to_owned());
            let process =
                process.filter(|text| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()));
            Err(Taken { folder: folder.to_owned(), process }.into())
        }
        Err(error) => Err(io::Error::from(error)).with_context(failed),
    }
}

/// Refuse when another router has the folder.
pub fn check(folder: &Path, pidfile: &Path) -> Result<()> {
    lock(folder, pidfile).map(drop)
}

/// Take the folder, and write the process number.
pub fn take(folder: &Path, pidfile: &Path) -> Result<Instance> {
    let locked = lock(folder, pidfile)?;
    let written = std::fs::write(pidfile, format!("{}\n", std::process::id()));
    written.with_context(|| format!("pidfile {}", pidfile.display()))?;
    Ok(Instance { _folder: locked, pidfile: Some(pidfile.to_owned()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_one_routers_and_free_again_when_it_ends() {
        let folder = std::env::temp_dir().join(format!("quiver-instance-{}", std::process::id()));
        let pidfile = folder.join("quiverd.pid");
        let first = take(&folder, &pidfile).unwrap();
        let refused = take(&folder, &pidfile).err().unwrap();
        assert!(refused.downcast_ref::<Taken>().is_some());
        assert!(
            refused.to_string().contains(&format!("(process {})", std::process::id())),
            "{refused}"
        );
        drop(first);
        assert!(!pidfile.exists());
        drop(take(&folder, &pidfile).unwrap());
        std::fs::remove_dir_all(folder).unwrap();
    }
}
