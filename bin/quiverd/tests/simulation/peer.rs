//! A memif peer that says anything: messages in any order, with any contents, cut short, with
//! descriptors of memory.

use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use quiver_memif::protocol::{
    AddRing, Init, MESSAGE_BYTES, Message, NAME_BYTES, SECRET_BYTES, VERSION,
};
use quiver_testkit::choices::Numbers;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix,
    SocketFlags, SocketType, connect, sendmsg, socket_with,
};

/// Bytes of the memory that it offers.
const REGION_BYTES: u64 = 65_536;
/// Connections that it holds at once.
const CONNECTIONS_MAX: usize = 4;

/// Its connections.
#[derive(Default)]
pub struct Peer {
    connections: Vec<OwnedFd>,
}

impl Peer {
    /// Connect to a master's socket, say something on a connection, or leave it.
    pub fn act(&mut self, path: &Path, numbers: &mut dyn Numbers) -> String {
        let connection = numbers.below(self.connections.len());
        match numbers.below(8) {
            0 if !self.connections.is_empty() => {
                self.connections.swap_remove(connection);
                "the peer leaves".into()
            }
            1..=5 if !self.connections.is_empty() => {
                let (message, memory) = (message(numbers), numbers.below(2) == 0);
                let kind = message.kind();
                let mut bytes = message.encode().to_vec();
                if numbers.below(4) == 0 {
                    bytes[numbers.below(MESSAGE_BYTES)] = numbers.below(256) as u8;
                }
                if numbers.below(8) == 0 {
                    bytes.truncate(numbers.below(MESSAGE_BYTES));
                }
                send(&self.connections[connection], &bytes, memory.then(region).as_ref());
                format!(
                    "the peer says a message of type {kind}, {} bytes, memory {memory}",
                    bytes.len()
                )
            }
            _ if self.connections.len() < CONNECTIONS_MAX => {
                let made = open(path);
                let words =
                    if made.is_some() { "the peer connects" } else { "the peer finds nobody" };
                self.connections.extend(made);
                words.into()
            }
            _ => "the peer rests".into(),
        }
    }
}

fn open(path: &Path) -> Option<OwnedFd> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket =
        socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).expect("a socket");
    let address = SocketAddrUnix::new(path).expect("a short name");
    connect(&socket, &address).ok().map(|()| socket)
}

/// Sealed memory, as an honest peer offers it.
fn region() -> OwnedFd {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let memory = memfd_create("simulation", flags).expect("a memfd");
    ftruncate(&memory, REGION_BYTES).expect("its size");
    fcntl_add_seals(&memory, SealFlags::SHRINK).expect("its seal");
    memory
}

/// What the router does not take is lost.
fn send(socket: &OwnedFd, bytes: &[u8], memory: Option<&OwnedFd>) {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let descriptors = memory.map(|memory| [memory.as_fd()]);
    if let Some(descriptors) = &descriptors {
        control.push(SendAncillaryMessage::ScmRights(descriptors));
    }
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    let _ = sendmsg(socket, &[IoSlice::new(bytes)], &mut control, flags);
}

/// Fields that are often what an honest peer says, so that it gets far.
fn message(numbers: &mut dyn Numbers) -> Message {
    let name: String = "x".repeat(numbers.below(NAME_BYTES));
    match numbers.below(8) {
        0 => Message::Ack,
        1 | 2 => {
            let version = VERSION ^ u16::from(numbers.below(8) == 0);
            let (id, mode) = (numbers.below(2) as u32, numbers.below(8).saturating_sub(5) as u8);
            Message::Init(Init { version, id, mode, secret: [0; SECRET_BYTES], name })
        }
        3 => {
            let size = [REGION_BYTES, REGION_BYTES, 0, 4096, u64::MAX][numbers.below(5)];
            Message::AddRegion { index: numbers.below(2) as u16, size }
        }
        4 | 5 => Message::AddRing(AddRing {
            flags: numbers.below(2) as u16,
            index: numbers.below(2) as u16,
            region: numbers.below(5).saturating_sub(3) as u16,
            offset: [0, 1024, 4096, 65_535, u32::MAX][numbers.below(5)],
            log2_size: [4, 4, 10, 14, 255][numbers.below(5)],
            private_header_bytes: numbers.below(4).saturating_sub(2) as u16,
        }),
        6 => Message::Connect(name),
        _ => Message::Disconnect { code: numbers.below(3) as u32, reason: name },
    }
}
