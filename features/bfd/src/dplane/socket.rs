//! Where a daemon connects: a TCP address of a network namespace, or a Unix socket.

use std::fs;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::time::Duration;

use quiver_linux::in_namespace;

/// Owner and group may connect, others may not.
const MODE: u32 = 0o660;

/// How long the control thread waits at most for a daemon on the same host.
const CONNECT_TIMEOUT: Duration = Duration::from_millis(50);

/// Where the router listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Endpoint {
    /// At an address of a network namespace, the router's own without a name.
    Tcp {
        /// The address.
        address: SocketAddr,
        /// The namespace.
        namespace: Option<String>,
    },
    /// At a path.
    Unix(PathBuf),
    /// Not at all: the daemon listens, at a loopback address of a network namespace.
    Daemon {
        /// The address.
        address: SocketAddr,
        /// The namespace.
        namespace: Option<String>,
    },
}

impl std::fmt::Display for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Endpoint::Tcp { address, .. } | Endpoint::Daemon { address, .. } => {
                write!(f, "{address}")
            }
            Endpoint::Unix(path) => write!(f, "{}", path.display()),
        }
    }
}

/// A socket that listens and does not block.
pub(super) enum Listener {
    Tcp(TcpListener),
    /// With its path, which goes with it.
    Unix(UnixListener, PathBuf),
}

impl Listener {
    /// Listen, if the endpoint says so. A socket that a router left behind is replaced, one that
    /// answers is not.
    pub fn bind(endpoint: &Endpoint) -> io::Result<Option<Listener>> {
        match endpoint {
            Endpoint::Daemon { .. } => Ok(None),
            Endpoint::Tcp { address, namespace } => {
                let address = *address;
                let bound =
                    in_namespace(namespace.as_deref(), move || TcpListener::bind(address))??;
                bound.set_nonblocking(true)?;
                Ok(Some(Listener::Tcp(bound)))
            }
            Endpoint::Unix(path) => {
                match fs::symlink_metadata(path) {
                    Ok(found) if !found.file_type().is_socket() => {
                        return Err(io::Error::other("it exists and is not a socket"));
                    }
                    Ok(_) if UnixStream::connect(path).is_ok() => {
                        return Err(io::Error::other("another process answers there"));
                    }
                    Ok(_) => fs::remove_file(path)?,
                    Err(_) => {}
                }
                let bound = UnixListener::bind(path)?;
                bound.set_nonblocking(true)?;
                fs::set_permissions(path, fs::Permissions::from_mode(MODE))?;
                Ok(Some(Listener::Unix(bound, path.clone())))
            }
        }
    }

    /// A daemon that has connected, and its name for logs.
    pub fn accept(&self) -> io::Result<(Stream, String)> {
        match self {
            Listener::Tcp(listener) => {
                let (stream, from) = listener.accept()?;
                Ok((Stream::tcp(stream)?, from.to_string()))
            }
            Listener::Unix(listener, path) => {
                let (stream, _) = listener.accept()?;
                stream.set_nonblocking(true)?;
                Ok((Stream::Unix(stream), path.display().to_string()))
            }
        }
    }

    pub fn fd(&self) -> RawFd {
        match self {
            Listener::Tcp(listener) => listener.as_raw_fd(),
            Listener::Unix(listener, _) => listener.as_raw_fd(),
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Listener::Unix(_, path) = self {
            let _ = fs::remove_file(path);
        }
    }
}

/// A connection.
pub(super) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Stream {
    fn tcp(stream: TcpStream) -> io::Result<Stream> {
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        Ok(Stream::Tcp(stream))
    }

    /// Connect to a daemon at a loopback address, which answers at once or not at all.
    pub fn connect(address: SocketAddr, namespace: Option<&str>) -> io::Result<Stream> {
        let connected =
            in_namespace(namespace, move || TcpStream::connect_timeout(&address, CONNECT_TIMEOUT));
        Stream::tcp(connected??)
    }

    pub fn fd(&self) -> RawFd {
        match self {
            Stream::Tcp(stream) => stream.as_raw_fd(),
            Stream::Unix(stream) => stream.as_raw_fd(),
        }
    }

    pub fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.read(bytes),
            Stream::Unix(stream) => stream.read(bytes),
        }
    }

    pub fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.write(bytes),
            Stream::Unix(stream) => stream.write(bytes),
        }
    }
}
