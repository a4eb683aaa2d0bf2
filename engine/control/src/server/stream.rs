//! A connection to a client, over a Unix socket or loopback TCP.

use std::io;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

use super::peer::Peer;

pub(crate) enum Stream {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Stream {
    /// Can anybody on this machine have opened it?
    pub(crate) fn is_tcp(&self) -> bool {
        matches!(self, Stream::Tcp(_))
    }

    /// Who is at the other end.
    pub(crate) fn peer(&self) -> Peer {
        match self {
            Stream::Unix(stream) => Peer::of(stream),
            Stream::Tcp(_) => Peer::tcp(),
        }
    }

    /// Who is at the other end: user and process, as the kernel knows them, or the address.
    pub(crate) fn who(&self) -> String {
        match self {
            Stream::Unix(stream) => match rustix::net::sockopt::socket_peercred(stream) {
                Ok(peer) => format!("uid {} pid {}", peer.uid.as_raw(), peer.pid.as_raw_nonzero()),
                Err(error) => format!("unknown client ({error})"),
            },
            Stream::Tcp(stream) => {
                stream.peer_addr().map_or("unknown client".into(), |peer| peer.to_string())
            }
        }
    }

    /// Never wait for the other side; send answers at once.
    pub(crate) fn prepare(&self) -> io::Result<()> {
        match self {
            Stream::Unix(stream) => stream.set_nonblocking(true),
            Stream::Tcp(stream) => stream.set_nonblocking(true).and_then(|()| stream.set_nodelay(true)),
        }
    }

    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Unix(stream) => stream.read(buffer),
            Stream::Tcp(stream) => stream.read(buffer),
        }
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Unix(stream) => stream.write(bytes),
            Stream::Tcp(stream) => stream.write(bytes),
        }
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Stream::Unix(stream) => stream.as_fd(),
            Stream::Tcp(stream) => stream.as_fd(),
        }
    }
}
