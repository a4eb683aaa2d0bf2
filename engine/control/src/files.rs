//! Files that commands name: who may have which opened, and how.
//!
//! The router opens files with its own rights, which are mostly root's; a client has the rights of
//! its user. So a client that is neither root nor the router's own user ([`Trust::Confined`]) names
//! files inside one directory ([`Places`]) only; no symbolic link, mount or `..` leads out of it,
//! it reads only what it could read itself, and replaces only what belongs to it: the files that
//! the router writes for a client belong to the client's user. For everybody: only regular files
//! are opened, never one with several names, and a file to be written is a new one that takes the
//! name over when it is complete.

use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _, chown};
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, ResolveFlags, Stat, Uid};
use rustix::io::Errno;

use crate::paths;

/// Whose rights a command has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Trust {
    /// The router's own: its start-up files, root, and the user that it runs as.
    #[default]
    Full,
    /// Those of another user of the control socket.
    Confined {
        /// The client's user.
        user: u32,
        /// The client's group.
        group: u32,
    },
}

/// Where confined clients may name files and sockets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Places {
    /// Files are read and written here.
    pub files_dir: PathBuf,
    /// Sockets are made here.
    pub sockets_dir: PathBuf,
    /// The group of the control sockets; who talks to them is in it.
    pub group: Option<u32>,
}

impl Places {
    /// The places of a router whose folder for sockets is `runtime_dir`.
    pub fn in_runtime_dir(runtime_dir: &Path) -> Places {
        Places {
            files_dir: runtime_dir.join("files"),
            sockets_dir: runtime_dir.to_owned(),
            group: None,
        }
    }

    /// Make the directory for files, if it is not there, for the group to read and write.
    ///
    /// # Errors
    /// The system refuses to make the directory or to change its group or mode.
    pub fn make(&self) -> io::Result<()> {
        if self.files_dir.is_dir() {
            return Ok(());
        }
        DirBuilder::new().recursive(true).mode(0o755).create(&self.files_dir)?;
        chown(&self.files_dir, None, self.group)?;
        // New files get the directory's group; only a file's owner removes it.
        let mode = if self.group.is_some() { 0o3770 } else { 0o700 };
        fs::set_permissions(&self.files_dir, fs::Permissions::from_mode(mode))
    }
}

impl Default for Places {
    fn default() -> Places {
        Places::in_runtime_dir(&paths::runtime_dir())
    }
}

/// Opens files for one client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// Whose rights count.
    pub trust: Trust,
    /// Where files may be.
    pub places: Places,
}

/// Kinds of file systems whose files are the kernel's own: a write changes the machine, and a read
/// may wait for ever.
const KERNEL_FILE_SYSTEMS: [u64; 9] = [
    0x9fa0,      // proc
    0x6265_6572, // sysfs
    0x6462_6720, // debugfs
    0x7472_6163, // tracefs
    0x0027_e0eb, // cgroup
    0x6367_7270, // cgroup2
    0x7363_6673, // securityfs
    0xcafe_4a11, // bpf
    0x6e73_6673, // nsfs
];

/// So many numbers were given to files under construction.
static LAST_NEW: AtomicU64 = AtomicU64::new(0);

impl Access {
    /// Open a regular file for reading. A name without a folder is sought in the directory for
    /// files, and with full trust then where the router was started.
    ///
    /// # Errors
    /// The client may not name the file, or it is no regular file, or the system refuses; the text
    /// says why.
    pub fn open_to_read(&self, name: &Path) -> Result<File, String> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = match self.trust {
            Trust::Full => {
                open(&self.path_to_read(name), flags).map_err(|error| errno_text(name, error))?
            }
            Trust::Confined { .. } => self.open_beneath(name, flags)?,
        };
        let about = regular(name, &file)?;
        self.may_read(name, &about)?;
        Ok(file.into())
    }

    /// Open a regular file that is there to go on writing at its end; `None` when there is none.
    ///
    /// # Errors
    /// As for [`open_to_read`](Self::open_to_read), or the file has other names.
    pub fn open_to_continue(&self, name: &Path) -> Result<Option<File>, String> {
        let flags = OFlags::RDWR | OFlags::APPEND | OFlags::NONBLOCK | OFlags::NOCTTY;
        let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let (folder, last) = self.folder_of(name)?;
        match rustix::fs::openat(&folder, &last, flags, Mode::empty()) {
            Ok(file) => {
                let about = regular(name, &file)?;
                only_name(name, &about)?;
                self.may_replace(name, &about)?;
                Ok(Some(file.into()))
            }
            Err(Errno::NOENT) => Ok(None),
            Err(Errno::LOOP) => Err(link(name)),
            Err(error) => Err(errno_text(name, error)),
        }
    }

    /// Begin a file that takes the name over by [`NewFile::finish`]. A file that is there stays as
    /// it is until then.
    ///
    /// # Errors
    /// The client may not name the file, it may not be replaced, or the system refuses; the text
    /// says why.
    pub fn create(&self, name: &Path) -> Result<NewFile, String> {
        let (folder, last) = self.folder_of(name)?;
        replaceable(self, &folder, &last, name)?;
        let number = LAST_NEW.fetch_add(1, Ordering::Relaxed);
        let mut new = OsString::from(".");
        new.push(&last);
        new.push(format!(".{}-{number}", std::process::id()));
        let flags =
            OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(0o640);
        let file = rustix::fs::openat(&folder, &new, flags, mode)
            .map_err(|error| errno_text(name, error))?;
        let path = self.absolute(name);
        let access = self.clone();
        let file = NewFile { access, folder, new: Some(new), last, path, file: file.into() };
        regular(name, &file.file)?;
        self.give_to_client(&file.file).map_err(|error| errno_text(name, error))?;
        Ok(file)
    }

    /// The path of a socket that may be made or connected to.
    ///
    /// # Errors
    /// The client may not name the path; the text says why.
    pub fn socket_path(&self, name: &Path) -> Result<PathBuf, String> {
        let Trust::Confined { .. } = self.trust else { return Ok(name.to_owned()) };
        let folder = &self.places.sockets_dir;
        let inside = match name.strip_prefix(folder) {
            Ok(inside) => inside,
            Err(_) if name.is_relative() => name,
            Err(_) => return Err(self.outside(name, folder)),
        };
        let mut parts = inside.components();
        match (parts.next(), parts.next()) {
            (Some(Component::Normal(part)), None) if !inside.to_string_lossy().starts_with('@') => {
                Ok(folder.join(part))
            }
            _ => Err(self.outside(name, folder)),
        }
    }

    /// A name of Linux's that a confined client says by itself, never by a path.
    ///
    /// # Errors
    /// The name is a path.
    pub fn bare_name<'n>(&self, name: &'n str) -> Result<&'n str, String> {
        match self.trust {
            Trust::Confined { .. } if name.contains('/') => {
                Err(format!("{name} is a path, which only root and the router's own user may name"))
            }
            _ => Ok(name),
        }
    }

    /// The path of a file to be read: see [`open_to_read`](Self::open_to_read).
    pub fn path_to_read(&self, name: &Path) -> PathBuf {
        let path = self.absolute(name);
        if self.trust == Trust::Full && !path.exists() { name.to_owned() } else { path }
    }

    /// The path that a name stands for: inside of the directory unless it begins with `/`.
    pub fn absolute(&self, name: &Path) -> PathBuf {
        match self.trust {
            // As the shell that started the router, or one that names a folder, would read it.
            Trust::Full if name.parent().is_some_and(|parent| parent != Path::new("")) => {
                name.to_owned()
            }
            _ => self.places.files_dir.join(name),
        }
    }

    fn outside(&self, name: &Path, folder: &Path) -> String {
        format!(
            "{} is not inside {}, where this user's files and sockets are (unix \
             {{ files-dir PATH }})",
            name.display(),
            folder.display()
        )
    }

    /// The name inside of the directory for files.
    fn inside<'n>(&self, name: &'n Path) -> Result<&'n Path, String> {
        let folder = &self.places.files_dir;
        let inside = match name.strip_prefix(folder) {
            Ok(inside) => inside,
            Err(_) if name.is_relative() => name,
            Err(_) => return Err(self.outside(name, folder)),
        };
        let is_plain = inside.components().all(|part| matches!(part, Component::Normal(_)));
        if !is_plain || inside.as_os_str().is_empty() {
            return Err(self.outside(name, folder));
        }
        Ok(inside)
    }

    fn open_beneath(&self, name: &Path, flags: OFlags) -> Result<OwnedFd, String> {
        let folder =
            open(&self.places.files_dir, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC)
                .map_err(|error| errno_text(&self.places.files_dir, error))?;
        let resolve = ResolveFlags::BENEATH
            | ResolveFlags::NO_SYMLINKS
            | ResolveFlags::NO_MAGICLINKS
            | ResolveFlags::NO_XDEV;
        let inside = self.inside(name)?;
        match rustix::fs::openat2(&folder, inside, flags, Mode::empty(), resolve) {
            Ok(file) => Ok(file),
            Err(Errno::LOOP) => Err(link(name)),
            Err(Errno::XDEV) => Err(self.outside(name, &self.places.files_dir)),
            Err(error) => Err(errno_text(name, error)),
        }
    }

    /// The folder of a file, and the file's name in it.
    fn folder_of(&self, name: &Path) -> Result<(OwnedFd, OsString), String> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let no_file = || format!("{} names no file", name.display());
        let last = name.file_name().filter(|_| !name.as_os_str().as_bytes().ends_with(b"/"));
        let last = last.ok_or_else(no_file)?.to_owned();
        let folder = match self.trust {
            Trust::Full => {
                let path = self.absolute(name);
                if path.parent() == Some(&self.places.files_dir) {
                    let _ = self.places.make(); // whether it is there is seen below
                }
                open(path.parent().unwrap_or(Path::new("/")), flags)
                    .map_err(|error| errno_text(name, error))?
            }
            Trust::Confined { .. } => match self.inside(name)?.parent() {
                Some(parent) if parent != Path::new("") => self.open_beneath(parent, flags)?,
                _ => {
                    open(&self.places.files_dir, flags).map_err(|error| errno_text(name, error))?
                }
            },
        };
        Ok((folder, last))
    }

    /// A file that is written for a confined client belongs to its user, and to the group of the
    /// control sockets. A router without the right to say so (`CAP_CHOWN`) keeps it.
    fn give_to_client(&self, file: &File) -> Result<(), Errno> {
        let Trust::Confined { user, group } = self.trust else { return Ok(()) };
        let group = self.places.group.unwrap_or(group);
        let (user, group) = (Uid::from_raw(user), Gid::from_raw(group));
        match rustix::fs::fchown(file, Some(user), Some(group)) {
            Ok(()) | Err(Errno::PERM) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// A confined client replaces and continues files of its own user.
    fn may_replace(&self, name: &Path, about: &Stat) -> Result<(), String> {
        match self.trust {
            Trust::Confined { user, .. } if about.st_uid != user => Err(format!(
                "{} belongs to user {}: remove it or choose another name",
                name.display(),
                about.st_uid
            )),
            _ => Ok(()),
        }
    }

    /// A confined client reads what it could read by itself.
    fn may_read(&self, name: &Path, about: &Stat) -> Result<(), String> {
        let Trust::Confined { user, group } = self.trust else { return Ok(()) };
        only_name(name, about)?;
        let is_ours = about.st_gid == group || Some(about.st_gid) == self.places.group;
        let bit = match (about.st_uid == user, is_ours) {
            (true, _) => 0o400,
            (_, true) => 0o040,
            _ => 0o004,
        };
        if about.st_mode & bit == 0 {
            return Err(errno_text(name, Errno::ACCESS));
        }
        Ok(())
    }
}

fn open(path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    rustix::fs::open(path, flags, Mode::empty())
}

fn errno_text(name: &Path, error: Errno) -> String {
    format!("{}: {}", name.display(), io::Error::from(error))
}

fn link(name: &Path) -> String {
    format!("{} is a symbolic link, which is not followed", name.display())
}

/// What an open file is; an error unless it is a regular one, and not the kernel's own.
pub(crate) fn regular(name: &Path, file: impl rustix::fd::AsFd) -> Result<Stat, String> {
    let shown = name.display();
    let about = rustix::fs::fstat(&file).map_err(|error| errno_text(name, error))?;
    if FileType::from_raw_mode(about.st_mode) != FileType::RegularFile {
        return Err(format!("{shown} is not a regular file"));
    }
    let system = rustix::fs::fstatfs(&file).map_err(|error| errno_text(name, error))?;
    if KERNEL_FILE_SYSTEMS.contains(&(system.f_type as u64 & 0xffff_ffff)) {
        return Err(format!("{shown} is not a regular file but the kernel's own"));
    }
    Ok(about)
}

pub(crate) fn only_name(name: &Path, about: &Stat) -> Result<(), String> {
    if about.st_nlink > 1 {
        let shown = name.display();
        return Err(format!(
            "{shown} has other names too (hard links), which would be meant with it"
        ));
    }
    Ok(())
}

/// May a new file take this name over?
fn replaceable(access: &Access, folder: &OwnedFd, last: &OsStr, name: &Path) -> Result<(), String> {
    match rustix::fs::statat(folder, last, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(errno_text(name, error)),
        Ok(about) => match FileType::from_raw_mode(about.st_mode) {
            FileType::RegularFile => {
                only_name(name, &about)?;
                access.may_replace(name, &about)
            }
            FileType::Symlink => Err(link(name)),
            _ => Err(format!("{} is not a regular file", name.display())),
        },
    }
}

/// A file under construction. Unless it is finished, it is removed.
#[derive(Debug)]
pub struct NewFile {
    access: Access,
    folder: OwnedFd,
    /// Its name until it is finished.
    new: Option<OsString>,
    last: OsString,
    path: PathBuf,
    file: File,
}

impl NewFile {
    /// The path that it will have.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where to write.
    pub fn file(&mut self) -> &mut File {
        &mut self.file
    }

    /// Give it its name, in place of the file that may have it.
    ///
    /// # Errors
    /// The file in its place may not be replaced, or the system refuses; the text says why.
    pub fn finish(mut self) -> Result<File, String> {
        let told = |error| errno_text(&self.path, error);
        replaceable(&self.access, &self.folder, &self.last, &self.path)?;
        if let Some(new) = &self.new {
            rustix::fs::renameat(&self.folder, new, &self.folder, &self.last).map_err(told)?;
        }
        self.new = None;
        self.file.try_clone().map_err(|error| format!("{}: {error}", self.path.display()))
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if let Some(new) = &self.new {
            let _ = rustix::fs::unlinkat(&self.folder, new, AtFlags::empty());
        }
    }
}

#[cfg(test)]
mod tests;
