//! The versions on disk. A file is written under another name, synced, and given its name, and the
//! folder is synced then: after a power cut there is the old file or the new one.
//!
//! | file | is |
//! | --- | --- |
//! | `N.version` | version N |
//! | `current` | which version is which ([`Current`]): renaming it is the moment of a change |
//!
//! All of it may wait for the file system: it runs on a thread beside the control thread.

use std::fs::{DirBuilder, File};
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, Dir, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use super::record::{self, Current, Version};
use crate::files::{only_name, regular};
use crate::words::TEXT_BYTES_MAX;

/// The folder of versions in the state directory.
const FOLDER: &str = "configurations";

const CURRENT: &str = "current";

/// Ends the name of a version's file.
const VERSION: &str = ".version";

/// Ends the name of a file that is being written.
const NEW: &str = ".new";

/// The line before a version's text is at most so long, bytes.
const HEAD_BYTES_MAX: usize = 8 * record::MESSAGE_BYTES_MAX;

/// Versions that are kept unless the start-up file says otherwise.
pub const VERSIONS_KEPT: usize = 100;

/// The folder of versions, which is this router's as long as this is held.
#[derive(Clone, Debug)]
pub struct Store {
    folder: Arc<OwnedFd>,
    path: PathBuf,
    /// So many versions are kept.
    kept: usize,
}

/// What is there.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) current: Current,
    /// In their order.
    pub(crate) versions: Vec<Version>,
    /// Files that cannot be used, and why.
    pub(crate) faults: Vec<String>,
}

/// A new file `current`, written and synced, that has not its name yet.
#[derive(Debug)]
pub(crate) struct Prepared {
    current: Current,
}

/// What is kept of a version.
#[derive(Debug)]
pub(crate) struct Text {
    pub(crate) version: Version,
    /// What it says, in commands.
    pub(crate) commands: String,
    /// The YAML document that was applied, where it was one.
    pub(crate) document: Option<String>,
}

impl Store {
    /// Open the folder for versions in a state directory, or make both, for the router's own user
    /// alone.
    ///
    /// # Errors
    /// The system refuses, the folder is somebody else's or a symbolic link, or another router uses
    /// it; the text says why.
    pub fn open(state_dir: &Path, kept: usize) -> Result<Store, String> {
        let path = state_dir.join(FOLDER);
        let failure = |error: Errno| format!("{}: {}", path.display(), io::Error::from(error));
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(state_dir)
            .map_err(|error| format!("{}: {error}", state_dir.display()))?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let state = rustix::fs::open(state_dir, flags, Mode::empty()).map_err(failure)?;
        match rustix::fs::mkdirat(&state, FOLDER, Mode::RWXU) {
            Ok(()) => rustix::fs::fsync(&state).map_err(failure)?,
            Err(Errno::EXIST) => {}
            Err(error) => return Err(failure(error)),
        }
        let folder = rustix::fs::openat(&state, FOLDER, flags | OFlags::NOFOLLOW, Mode::empty());
        let folder = folder.map_err(|error| match error {
            Errno::LOOP | Errno::NOTDIR => {
                format!("{} is no folder: symbolic links are not followed", path.display())
            }
            error => failure(error),
        })?;
        let about = rustix::fs::fstat(&folder).map_err(failure)?;
        if about.st_uid != rustix::process::geteuid().as_raw() {
            let (shown, user) = (path.display(), about.st_uid);
            return Err(format!("{shown} belongs to user {user}, not to the router's own"));
        }
        if about.st_mode & 0o777 != 0o700 {
            rustix::fs::fchmod(&folder, Mode::RWXU).map_err(failure)?;
        }
        match rustix::fs::flock(&folder, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => {
                return Err(format!("another router keeps its versions in {}", path.display()));
            }
            Err(error) => return Err(failure(error)),
        }
        Ok(Store { folder: Arc::new(folder), path, kept: kept.max(1) })
    }

    /// Look at all files. What a change that broke off has left is removed.
    ///
    /// # Errors
    /// The folder cannot be read or written.
    pub(crate) fn look(&self) -> Result<Found, String> {
        let mut found = Found::default();
        let (mut numbers, mut left) = (Vec::new(), Vec::new());
        let dir = Dir::read_from(&*self.folder).map_err(|error| self.failure("", error))?;
        for entry in dir {
            let entry = entry.map_err(|error| self.failure("", error))?;
            let Ok(name) = entry.file_name().to_str() else { continue };
            if let Some(number) = name.strip_suffix(VERSION).and_then(|name| name.parse().ok()) {
                numbers.push(number);
            } else if name.ends_with(NEW) {
                left.push(name.to_owned());
            }
        }
        left.iter().for_each(|name| drop(self.unlink(name)));
        numbers.sort_unstable();
        match self.read(CURRENT, TEXT_BYTES_MAX) {
            Ok(Some(file)) => match current_of(&file) {
                Ok(current) => found.current = current,
                Err(why) => {
                    found.faults.push(format!("{}: {why}", self.path.join(CURRENT).display()));
                    found.current = Current {
                        saved: numbers.last().copied(),
                        last: numbers.last().copied().unwrap_or(0),
                        ..Current::default()
                    };
                }
            },
            Ok(None) => {
                // The first change renames this file, so it is there before.
                let first = numbers.last().copied();
                found.current =
                    Current { saved: first, last: first.unwrap_or(0), ..Current::default() };
                self.put(self.prepare(&found.current)?)?;
            }
            Err(why) => return Err(why),
        }
        for number in numbers {
            if number > found.current.last {
                // Written for a change that did not come about.
                let _ = self.remove(number);
                continue;
            }
            match self.version(number) {
                Ok(version) => found.versions.push(version),
                Err(why) => found.faults.push(why),
            }
        }
        Ok(found)
    }

    /// What is kept of a version beside its text.
    fn version(&self, number: u32) -> Result<Version, String> {
        let name = name_of(number);
        let file = self.read(&name, HEAD_BYTES_MAX)?.ok_or_else(|| self.gone(number))?;
        let head = || -> Result<Version, String> {
            let seal = record::seal_of(&file)?;
            let bytes = &file[seal.start..];
            let end = bytes.iter().position(|byte| *byte == b'\n').ok_or("its head is cut")?;
            version_of(number, &bytes[..end])
        };
        head().map_err(|why| format!("{}: {why}", self.path.join(&name).display()))
    }

    /// A version and its text.
    ///
    /// # Errors
    /// It is not there, or damaged.
    pub(crate) fn text_of(&self, number: u32) -> Result<Text, String> {
        let name = name_of(number);
        let file = self.read(&name, TEXT_BYTES_MAX)?.ok_or_else(|| self.gone(number))?;
        let read = || -> Result<Text, String> {
            let text = record::opened(&file)?;
            let (head, text) = text.split_once('\n').ok_or("its head is cut")?;
            let version = version_of(number, head.as_bytes())?;
            let end = text.len().checked_sub(version.document_bytes);
            let parts = end.and_then(|end| text.split_at_checked(end));
            let (commands, document) = parts.ok_or("its document is cut")?;
            let document = (!document.is_empty()).then(|| document.to_owned());
            Ok(Text { version, commands: commands.to_owned(), document })
        };
        read().map_err(|why| format!("{}: {why}", self.path.join(&name).display()))
    }

    fn gone(&self, number: u32) -> String {
        format!("{} is not there", self.path.join(name_of(number)).display())
    }

    /// Write a version. It is none of the router's until `current` says so.
    ///
    /// # Errors
    /// The system refuses; nothing is left then.
    pub(crate) fn write(
        &self,
        version: &Version,
        text: &str,
        document: Option<&str>,
    ) -> Result<(), String> {
        let document = document.unwrap_or_default();
        let version = Version { document_bytes: document.len(), ..version.clone() };
        let head = serde_json::to_string(&version).map_err(|error| error.to_string())?;
        let name = name_of(version.number);
        self.write_new(&name, &record::sealed(&format!("{head}\n{text}{document}")))?;
        self.rename(&name)
    }

    /// Write a new `current` up to its name: what can fail for want of room has been done then.
    ///
    /// # Errors
    /// The system refuses.
    pub(crate) fn prepare(&self, current: &Current) -> Result<Prepared, String> {
        let text = serde_json::to_string(current).map_err(|error| error.to_string())?;
        self.write_new(CURRENT, &record::sealed(&text))?;
        Ok(Prepared { current: current.clone() })
    }

    /// Give a new `current` its name: the change has come about.
    ///
    /// # Errors
    /// The system refuses.
    pub(crate) fn put(&self, prepared: Prepared) -> Result<Current, String> {
        self.rename(CURRENT)?;
        Ok(prepared.current)
    }

    /// Remove a version.
    ///
    /// # Errors
    /// The system refuses.
    pub(crate) fn remove(&self, number: u32) -> Result<(), String> {
        self.unlink(&name_of(number))
    }

    /// The oldest of these versions, as many as are more than are kept. Those that `current` needs
    /// stay.
    pub(crate) fn too_many(&self, versions: &[Version], current: &Current) -> Vec<u32> {
        let more = versions.len().saturating_sub(self.kept);
        let waiting = current.waiting.map(|waiting| waiting.version);
        let needed = |number: u32| Some(number) == current.saved || Some(number) == waiting;
        let numbers = versions.iter().map(|version| version.number);
        numbers.filter(|number| !needed(*number)).take(more).collect()
    }

    fn write_new(&self, name: &str, bytes: &[u8]) -> Result<(), String> {
        let new = new_name(name);
        self.unlink(&new)?;
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&*self.folder, &new, flags, Mode::RUSR | Mode::WUSR);
        let mut file: File = file.map_err(|error| self.failure(&new, error))?.into();
        let written = file.write_all(bytes).and_then(|()| file.sync_all());
        written.map_err(|error| {
            let _ = self.unlink(&new);
            format!("{}: {error}", self.path.join(name).display())
        })
    }

    fn rename(&self, name: &str) -> Result<(), String> {
        let folder = &*self.folder;
        let renamed = rustix::fs::renameat(folder, new_name(name), folder, name)
            .and_then(|()| rustix::fs::fsync(folder));
        renamed.map_err(|error| self.failure(name, error))
    }

    /// A regular file with one name, up to so many bytes; `None` when there is none.
    fn read(&self, name: &str, most: usize) -> Result<Option<Vec<u8>>, String> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = match rustix::fs::openat(&*self.folder, name, flags, Mode::empty()) {
            Ok(file) => file,
            Err(Errno::NOENT) => return Ok(None),
            Err(error) => return Err(self.failure(name, error)),
        };
        let path = self.path.join(name);
        only_name(&path, &regular(&path, &file)?)?;
        let mut bytes = Vec::new();
        let read = File::from(file).take(most as u64).read_to_end(&mut bytes);
        read.map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Some(bytes))
    }

    /// Remove a file, if it is there.
    fn unlink(&self, name: &str) -> Result<(), String> {
        match rustix::fs::unlinkat(&*self.folder, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(self.failure(name, error)),
        }
    }

    fn failure(&self, name: &str, error: Errno) -> String {
        format!("{}: {}", self.path.join(name).display(), io::Error::from(error))
    }
}

fn name_of(number: u32) -> String {
    format!("{number}{VERSION}")
}

fn new_name(name: &str) -> String {
    format!("{name}{NEW}")
}

fn version_of(number: u32, head: &[u8]) -> Result<Version, String> {
    let version: Version =
        serde_json::from_slice(head).map_err(|error| format!("its head is damaged: {error}"))?;
    match version.number == number {
        true => Ok(version),
        false => Err(format!("it is version {}", version.number)),
    }
}

fn current_of(file: &[u8]) -> Result<Current, String> {
    serde_json::from_str(record::opened(file)?).map_err(|error| error.to_string())
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
