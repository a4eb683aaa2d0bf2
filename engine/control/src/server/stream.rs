//! A connection to a client, over a Unix socket, loopback TCP, or TLS from elsewhere.

use std::io;
use std::io::{Read, Write};
use std::mem::MaybeUninit;
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use quiver_linux::disposal::Account;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags};

use super::peer::{Groups, Peer};
use super::tls::Tls;

/// Descriptors that the kernel takes in one message (`SCM_MAX_FD`).
const DESCRIPTORS_MAX: usize = 253;

pub(crate) enum Stream {
    Unix(UnixStream),
    Tcp(TcpStream),
    Tls(Box<Tls>),
}

impl Stream {
    /// Can anybody on this machine have opened it?
    pub(crate) fn is_tcp(&self) -> bool {
        matches!(self, Stream::Tcp(_))
    }

    /// Who is at the other end; `None` if it is nobody who may use the sockets.
    pub(crate) fn peer(&self, groups: Groups) -> Option<Peer> {
        match self {
            Stream::Unix(stream) => Peer::of(stream, groups),
            Stream::Tcp(_) => Some(Peer::tcp()),
            Stream::Tls(_) => Some(Peer::stranger()),
        }
    }

    /// Who is at the other end, once: when a certificate was shown and found to be good.
    pub(crate) fn introduced(&mut self) -> Option<(Peer, String)> {
        let Stream::Tls(tls) = self else { return None };
        let known = tls.introduced()?;
        let who = format!("{} from {} ({})", known.name, tls.from(), known.role.name());
        Some((Peer::certified(&known.name, known.role), who))
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
            Stream::Tls(tls) => tls.from().to_string(),
        }
    }

    /// Never wait for the other side; send answers at once.
    pub(crate) fn prepare(&self) -> io::Result<()> {
        match self {
            Stream::Unix(stream) => stream.set_nonblocking(true),
            Stream::Tcp(stream) => prepare_tcp(stream),
            Stream::Tls(tls) => prepare_tcp(tls.stream()),
        }
    }

    /// Read what came. Descriptors that came with it are closed by a thread that `closing` counts,
    /// and are an error: no client has a reason to send any.
    pub(crate) fn read(&mut self, buffer: &mut [u8], closing: &Account) -> io::Result<usize> {
        match self {
            Stream::Unix(stream) => receive(stream, buffer, closing),
            Stream::Tcp(stream) => stream.read(buffer),
            Stream::Tls(tls) => tls.read(buffer),
        }
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Unix(stream) => stream.write(bytes),
            Stream::Tcp(stream) => stream.write(bytes),
            Stream::Tls(tls) => tls.write(bytes),
        }
    }

    /// Has something been read from the socket that [`read`](Self::read) has not returned?
    pub(crate) fn has_text(&mut self) -> bool {
        match self {
            Stream::Tls(tls) => tls.has_text(),
            Stream::Unix(_) | Stream::Tcp(_) => false,
        }
    }

    /// Has something been taken by [`write`](Self::write) that the socket has not?
    pub(crate) fn is_sending(&self) -> bool {
        matches!(self, Stream::Tls(tls) if tls.is_sending())
    }

    /// Hand it to the socket.
    pub(crate) fn send(&mut self) -> io::Result<()> {
        match self {
            Stream::Tls(tls) => tls.send(),
            Stream::Unix(_) | Stream::Tcp(_) => Ok(()),
        }
    }
}

fn prepare_tcp(stream: &TcpStream) -> io::Result<()> {
    stream.set_nonblocking(true).and_then(|()| stream.set_nodelay(true))
}

/// Since Linux 6.16 nobody can send descriptors to the control sockets. Before, they are taken
/// over, for what is left to the kernel is closed by this thread, which may take as long as the
/// sender wants.
fn receive(stream: &UnixStream, buffer: &mut [u8], closing: &Account) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let slices = &mut [io::IoSliceMut::new(buffer)];
    let received = rustix::net::recvmsg(stream, slices, &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let descriptors: Vec<OwnedFd> = control
        .drain()
        .filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
            _ => None,
        })
        .flatten()
        .collect();
    if !descriptors.is_empty() {
        closing.dispose(descriptors);
        return Err(io::Error::other("descriptors are not taken"));
    }
    Ok(received.bytes)
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Stream::Unix(stream) => stream.as_fd(),
            Stream::Tcp(stream) => stream.as_fd(),
            Stream::Tls(tls) => tls.stream().as_fd(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};

    #[test]
    fn descriptors_that_came_are_closed_elsewhere_and_are_an_error() {
        let (own, peer) = UnixStream::pair().unwrap();
        let (mut reader, writer) = io::pipe().unwrap();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let both = [writer.as_fd(), writer.as_fd()];
        assert!(control.push(SendAncillaryMessage::ScmRights(&both)));
        let bytes = [io::IoSlice::new(b"show run\n")];
        rustix::net::sendmsg(&peer, &bytes, &mut control, SendFlags::empty()).unwrap();
        drop(writer);
        let closing = Account::default();
        let mut stream = Stream::Unix(own);
        assert!(stream.read(&mut [0; 64], &closing).is_err());
        assert_eq!(reader.read(&mut [0; 1]).unwrap(), 0, "nobody holds them any more");
        (&peer).write_all(b"x").unwrap();
        assert_eq!(stream.read(&mut [0; 64], &closing).unwrap(), 1);
    }
}
