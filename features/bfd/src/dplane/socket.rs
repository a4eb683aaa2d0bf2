//! Where a daemon connects: a TCP address of a network namespace, or a Unix socket.

use std::fs;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use quiver_control::Refusal;
use quiver_control::server::listen_unix;
use quiver_linux::in_namespace;
use quiver_linux::rights::refuse_descriptors;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};

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
    /// Not at all: the daemon listens at a path.
    DaemonAt(PathBuf),
}

impl std::fmt::Display for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Endpoint::Tcp { address, .. } | Endpoint::Daemon { address, .. } => {
                write!(f, "{address}")
            }
            Endpoint::Unix(path) | Endpoint::DaemonAt(path) => write!(f, "{}", path.display()),
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
    ///
    /// # Errors
    /// Something else is there, or the system refuses.
    pub fn bind(endpoint: &Endpoint) -> Result<Option<Listener>, Refusal> {
        match endpoint {
            Endpoint::Daemon { .. } | Endpoint::DaemonAt(_) => Ok(None),
            Endpoint::Tcp { address, namespace } => {
                let address = *address;
                let bound = in_namespace(namespace.as_deref(), move || TcpListener::bind(address));
                let failed = |error: io::Error| {
                    Refusal::new(format!("cannot listen at {endpoint}: {error}"))
                };
                let bound = bound.flatten().map_err(failed)?;
                bound.set_nonblocking(true).map_err(failed)?;
                Ok(Some(Listener::Tcp(bound)))
            }
            Endpoint::Unix(path) => {
                let bound = listen_unix(path, None)?;
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

/// Connect to a path without waiting: a daemon whose queue is full is not there.
fn connect_unix(path: &Path) -> io::Result<UnixStream> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    let _ = refuse_descriptors(&socket); // an older kernel hands them over to be closed
    connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(UnixStream::from(socket))
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

    /// Connect to a daemon that listens on this host, which answers at once or not at all. `None`:
    /// the router listens itself.
    pub fn connect(endpoint: &Endpoint) -> Option<io::Result<Stream>> {
        match endpoint {
            Endpoint::Daemon { address, namespace } => {
                let address = *address;
                let connected = in_namespace(namespace.as_deref(), move || {
                    TcpStream::connect_timeout(&address, CONNECT_TIMEOUT)
                });
                Some(connected.flatten().and_then(Stream::tcp))
            }
            Endpoint::DaemonAt(path) => Some(connect_unix(path).map(Stream::Unix)),
            Endpoint::Tcp { .. } | Endpoint::Unix(_) => None,
        }
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
