//! Datagrams to a collector by a UDP socket of Linux that never blocks. What cannot be sent is
//! counted and forgotten.

use std::io::{Error, ErrorKind};
use std::net::{SocketAddr, UdpSocket};

use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with};

/// A socket that could not be opened is tried again after so long, nanoseconds.
const RETRY_NS: u64 = 1_000_000_000;
/// What the socket may hold for a slow device, bytes; Linux may grant less.
const SEND_BUFFER_BYTES: usize = 4 << 20;

/// What became of datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DatagramCounts {
    /// Given to Linux.
    pub sent: u64,
    /// Bytes of them, behind the UDP header.
    pub sent_bytes: u64,
    /// ICMP errors that came back: nobody listens there, or nobody knows the way.
    pub refused: u64,
    /// Not sent: the socket's buffer was full.
    pub full: u64,
    /// Not sent: no socket, or Linux refused.
    pub errors: u64,
}

/// A socket to a collector, opened when it is needed.
#[derive(Debug)]
pub struct Datagrams {
    collector: SocketAddr,
    source: SocketAddr,
    socket: Option<UdpSocket>,
    /// A socket is not opened before this time of the router's clock.
    retry_ns: u64,
    /// The last error; none since the last datagram that was sent.
    error: Option<(ErrorKind, String)>,
}

impl Datagrams {
    /// From a source, whose port may be 0 for any, to a collector.
    pub fn new(source: SocketAddr, collector: SocketAddr) -> Datagrams {
        Datagrams { collector, source, socket: None, retry_ns: 0, error: None }
    }

    /// Why the last datagram was not sent, in a sentence.
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

    /// Send a datagram; false when it is lost.
    pub fn send(&mut self, now_ns: u64, datagram: &[u8], counts: &mut DatagramCounts) -> bool {
        self.open(now_ns);
        let Some(socket) = &self.socket else {
            counts.errors += 1;
            return false;
        };
        // Linux reports an ICMP error about an earlier datagram here, and sends nothing: this one
        // is sent by a second call.
        let mut outcome = socket.send(datagram);
        if outcome.as_ref().is_err_and(is_from_afar) {
            counts.refused += 1;
            outcome = socket.send(datagram);
        }
        match outcome {
            Ok(bytes) => {
                counts.sent += 1;
                counts.sent_bytes += bytes as u64;
                self.error = None;
                true
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                counts.full += 1;
                self.error = Some((error.kind(), "the socket's buffer is full".to_owned()));
                false
            }
            Err(error) => {
                counts.errors += 1;
                self.error = Some((error.kind(), error.to_string()));
                false
            }
        }
    }

    fn open(&mut self, now_ns: u64) {
        if self.socket.is_some() || now_ns < self.retry_ns {
            return;
        }
        match connected(self.source, self.collector) {
            Ok(socket) => self.socket = Some(socket),
            Err(error) => {
                self.retry_ns = now_ns + RETRY_NS;
                let text = match error.kind() {
                    ErrorKind::AddrNotAvailable => {
                        format!("Linux does not have the address {}", self.source.ip())
                    }
                    _ => format!("{} to {}: {error}", self.source, self.collector),
                };
                self.error = Some((error.kind(), text));
            }
        }
    }
}

/// Is an error one that an ICMP error caused?
fn is_from_afar(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::ConnectionRefused | ErrorKind::HostUnreachable)
}

/// A socket that never blocks. Several of one source port may each be connected to a collector of
/// its own.
fn bound(source: SocketAddr) -> Result<UdpSocket, Error> {
    let family = if source.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(family, SocketType::DGRAM, flags, None)?;
    if source.port() != 0 {
        rustix::net::sockopt::set_socket_reuseaddr(&socket, true)?;
    }
    bind(&socket, &source)?;
    Ok(socket.into())
}

fn connected(source: SocketAddr, collector: SocketAddr) -> Result<UdpSocket, Error> {
    let socket = bound(source)?;
    // A smaller buffer loses more, but works.
    let _ = rustix::net::sockopt::set_socket_send_buffer_size(&socket, SEND_BUFFER_BYTES);
    socket.connect(collector)?;
    Ok(socket)
}
