//! A UDP socket of Linux between both routers. It never blocks: what cannot be sent is counted,
//! and the link sends it again.

use std::io::{Error, ErrorKind};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsRawFd, RawFd};

/// A socket that could not be opened is tried again after so long, nanoseconds.
const RETRY_NS: u64 = 1_000_000_000;
/// What the socket may hold, bytes; Linux may grant less.
const BUFFER_BYTES: usize = 4 << 20;
/// The longest datagram that is read, bytes. What is longer has a wrong code.
const DATAGRAM_BYTES: usize = 9_216;

/// A socket from an own address to the peer's, opened when it is needed.
#[derive(Debug)]
pub struct Socket {
    own: SocketAddr,
    peer: SocketAddr,
    socket: Option<UdpSocket>,
    retry_ns: u64,
    error: Option<(ErrorKind, String)>,
    /// Datagrams that Linux did not take.
    pub unsent: u64,
    buffer: Vec<u8>,
}

impl Socket {
    /// From an address of Linux to the peer.
    pub fn new(own: SocketAddr, peer: SocketAddr) -> Socket {
        let buffer = vec![0; DATAGRAM_BYTES];
        Socket { own, peer, socket: None, retry_ns: 0, error: None, unsent: 0, buffer }
    }

    /// Why there is no socket, or why the last datagram was not sent.
    pub fn error(&self) -> Option<&str> {
        self.error.as_ref().map(|(_, text)| text.as_str())
    }

    /// The same in a word, for programs.
    pub fn error_word(&self) -> Option<&'static str> {
        self.error.as_ref().map(|(kind, _)| match kind {
            ErrorKind::AddrNotAvailable => "address-not-available",
            ErrorKind::AddrInUse => "port-in-use",
            ErrorKind::WouldBlock => "buffer-full",
            ErrorKind::NetworkUnreachable | ErrorKind::HostUnreachable => "unreachable",
            ErrorKind::ConnectionRefused => "refused",
            ErrorKind::PermissionDenied => "not-permitted",
            _ => "other",
        })
    }

    /// Open it when it is time to. The descriptor, when it was opened just now.
    pub fn open(&mut self, now_ns: u64) -> Option<RawFd> {
        if self.socket.is_some() || now_ns < self.retry_ns {
            return None;
        }
        match connected(self.own, self.peer) {
            Ok(socket) => {
                self.error = None;
                let fd = socket.as_raw_fd();
                self.socket = Some(socket);
                Some(fd)
            }
            Err(error) => {
                self.retry_ns = now_ns + RETRY_NS;
                let text = match error.kind() {
                    ErrorKind::AddrNotAvailable => {
                        format!("Linux does not have the address {}", self.own.ip())
                    }
                    _ => format!("{} to {}: {error}", self.own, self.peer),
                };
                self.error = Some((error.kind(), text));
                None
            }
        }
    }

    /// Send a datagram.
    pub fn send(&mut self, datagram: &[u8]) {
        let Some(socket) = &self.socket else {
            self.unsent += 1;
            return;
        };
        // Linux reports an ICMP error about an earlier datagram here, and sends nothing.
        let mut outcome = socket.send(datagram);
        if outcome.as_ref().is_err_and(is_from_afar) {
            outcome = socket.send(datagram);
        }
        self.error = outcome.as_ref().err().map(|error| (error.kind(), error.to_string()));
        self.unsent += u64::from(outcome.is_err());
    }

    /// Read at most `max` datagrams. True when more may wait.
    pub fn receive(&mut self, max: usize, mut each: impl FnMut(&[u8])) -> bool {
        let Some(socket) = &self.socket else { return false };
        for _ in 0..max {
            match socket.recv(&mut self.buffer) {
                Ok(length) => each(self.buffer.get(..length).unwrap_or_default()),
                Err(error) if is_from_afar(&error) => {}
                Err(_) => return false,
            }
        }
        true
    }
}

/// Is an error one that an ICMP error caused?
fn is_from_afar(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::ConnectionRefused | ErrorKind::HostUnreachable)
}

fn connected(own: SocketAddr, peer: SocketAddr) -> Result<UdpSocket, Error> {
    let socket = UdpSocket::bind(own)?;
    socket.set_nonblocking(true)?;
    // Smaller buffers lose more, which is sent again.
    let _ = rustix::net::sockopt::set_socket_send_buffer_size(&socket, BUFFER_BYTES);
    let _ = rustix::net::sockopt::set_socket_recv_buffer_size(&socket, BUFFER_BYTES);
    socket.connect(peer)?;
    Ok(socket)
}
