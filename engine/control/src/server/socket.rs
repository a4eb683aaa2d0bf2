//! Sockets in the file system, and on the loopback.

use std::fs;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, PermissionsExt, chown};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use quiver_linux::rights::refuse_descriptors;

use super::stream::Stream;
use super::tls::Door;
use crate::error::Refusal;

/// Where clients come to.
pub(crate) enum Listener {
    Unix(UnixListener),
    Tcp(TcpListener),
    Tls(Box<Door>),
}

impl Listener {
    /// The next client; `None` if it was turned away.
    pub(crate) fn accept(&mut self) -> io::Result<Option<Stream>> {
        Ok(match self {
            Listener::Unix(listener) => Some(Stream::Unix(listener.accept()?.0)),
            Listener::Tcp(listener) => Some(Stream::Tcp(listener.accept()?.0)),
            Listener::Tls(door) => door.accept()?.map(|tls| Stream::Tls(Box::new(tls))),
        })
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Listener::Unix(listener) => listener.as_fd(),
            Listener::Tcp(listener) => listener.as_fd(),
            Listener::Tls(door) => door.listener().as_fd(),
        }
    }
}

/// Listen for TCP on the loopback; elsewhere there is no telling who may come.
pub(crate) fn listen_tcp(address: SocketAddr) -> Result<TcpListener, Refusal> {
    if !address.ip().is_loopback() {
        return Err(Refusal::new(format!("{address} is not an address of the loopback"))
            .remedy("use 127.0.0.1:PORT or [::1]:PORT, and ssh -L from elsewhere"));
    }
    let listener = TcpListener::bind(address)
        .map_err(|error| Refusal::new(format!("cannot listen at {address}: {error}")))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Owner and group may talk to the router, others may not.
const SOCKET_MODE: u32 = 0o660;
/// Everybody may connect, for several groups may talk to the router: the server looks who it is.
const OPEN_SOCKET_MODE: u32 = 0o666;

/// Let everybody connect to a socket that [`listen_unix`] made.
pub(crate) fn open_to_all(path: &Path) -> Result<(), Refusal> {
    fs::set_permissions(path, fs::Permissions::from_mode(OPEN_SOCKET_MODE)).map_err(|error| {
        Refusal::new(format!("cannot set the permissions of {}: {error}", path.display()))
    })
}

/// Make the folder that a socket at `path` stands in.
pub(crate) fn make_folder(path: &Path) -> Result<(), Refusal> {
    let made = path.parent().map_or(Ok(()), fs::create_dir_all);
    made.map_err(|error| {
        Refusal::new(format!("cannot make the folder of {}: {error}", path.display()))
    })
}

/// Listen at `path`, which the owner and the group may connect to: `group`, or that of the
/// process. A socket that a router left behind is replaced; one that answers is not. The listener
/// does not block, and takes no descriptors from its peers.
///
/// # Errors
/// Something else is at `path`, another process answers there, there is no such group, or the
/// system refuses.
pub fn listen_unix(path: &Path, group: Option<&str>) -> Result<UnixListener, Refusal> {
    let name = path.display();
    let failed =
        |what: &str, error: io::Error| Refusal::new(format!("cannot {what} {name}: {error}"));
    match fs::symlink_metadata(path) {
        Ok(found) if !found.file_type().is_socket() => {
            return Err(Refusal::new(format!("{name} exists and is not a socket"))
                .remedy("remove it, or listen elsewhere"));
        }
        Ok(_) if UnixStream::connect(path).is_ok() => {
            return Err(Refusal::new(format!("another process answers at {name}"))
                .remedy("stop it, or listen elsewhere"));
        }
        Ok(_) => fs::remove_file(path).map_err(|error| failed("replace", error))?,
        Err(_) => {}
    }
    let listener = UnixListener::bind(path).map_err(|error| failed("listen at", error))?;
    let _ = refuse_descriptors(&listener); // an older kernel hands them over to be closed
    listener.set_nonblocking(true)?;
    fs::set_permissions(path, fs::Permissions::from_mode(SOCKET_MODE))
        .map_err(|error| failed("set the permissions of", error))?;
    if let Some(group) = group {
        let id = group_id(group)?;
        chown(path, None, Some(id)).map_err(|error| failed("give to its group", error))?;
    }
    Ok(listener)
}

/// The number of a group, by number or by name.
///
/// # Errors
/// There is no such group.
pub fn group_id(group: &str) -> Result<u32, Refusal> {
    if let Ok(id) = group.parse() {
        return Ok(id);
    }
    let groups = fs::read_to_string("/etc/group").unwrap_or_default();
    let found = groups.lines().find_map(|line| {
        let mut fields = line.split(':');
        (fields.next() == Some(group)).then(|| fields.nth(1)?.parse().ok()).flatten()
    });
    found.ok_or_else(|| {
        Refusal::new(format!("no group '{group}'"))
            .remedy("`getent group` lists the groups of this machine")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_left_behind_is_replaced_and_one_that_answers_is_not() {
        let path = std::env::temp_dir().join(format!("quiver-socket-{}", std::process::id()));
        let first = listen_unix(&path, None).unwrap();
        let refused = listen_unix(&path, None).unwrap_err();
        assert!(refused.to_string().starts_with("another process answers"), "{refused}");
        drop(first);
        drop(listen_unix(&path, None).unwrap());
        fs::remove_file(&path).unwrap();
        fs::write(&path, "text").unwrap();
        assert!(listen_unix(&path, None).unwrap_err().to_string().contains("is not a socket"));
        fs::remove_file(&path).unwrap();
    }
}
