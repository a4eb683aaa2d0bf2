//! The control channel: SOCK_SEQPACKET sockets of the Unix family that carry messages and
//! descriptors. A name that begins with `@` is in Linux's abstract name space.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use crate::protocol::{MESSAGE_BYTES, Message};
use quiver_linux::disposal::Account;

/// Descriptors that Linux lets travel with one message (`SCM_MAX_FD`). All are taken over, because
/// the system would close what there is no room for on our thread, and a close can block.
const DESCRIPTORS_MAX: usize = 253;
/// Words of the control buffer for as many.
const CONTROL_WORDS: usize = (DESCRIPTORS_MAX * size_of::<RawFd>()).div_ceil(8) + 4;
/// Peers that wait to be accepted.
const BACKLOG: i32 = 128;

/// One end of a connection, not blocking.
pub(crate) struct Channel(OwnedFd);

/// What a look at the channel gives.
pub(crate) enum Received {
    /// 128 bytes, and the descriptors that came with them.
    Message(Box<[u8; MESSAGE_BYTES]>, Vec<OwnedFd>),
    /// A message of another size, and the descriptors that came with it.
    Size(usize, Vec<OwnedFd>),
    /// A message with descriptors, while the router has no room for as many as there can be. It
    /// stays where it is.
    NoDescriptors,
    /// Nothing now.
    Nothing,
    /// The other end is gone.
    Closed(Option<io::Error>),
}

fn address(name: &str) -> io::Result<(libc::sockaddr_un, libc::socklen_t)> {
    // SAFETY: all zero is a valid sockaddr_un.
    let mut address: libc::sockaddr_un = unsafe { std::mem::zeroed() };
    address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    let bytes = name.as_bytes();
    if bytes.is_empty() || bytes.len() >= address.sun_path.len() || bytes.contains(&0) {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("a socket's name has 1 to {} bytes and no zero", address.sun_path.len() - 1),
        ));
    }
    for (to, from) in address.sun_path.iter_mut().zip(bytes) {
        *to = *from as libc::c_char;
    }
    let mut length = size_of::<libc::sa_family_t>() + bytes.len();
    if bytes[0] == b'@' {
        address.sun_path[0] = 0; // abstract: the length ends it
    } else {
        length += 1;
    }
    Ok((address, length as libc::socklen_t))
}

/// Can a socket have this name?
pub(crate) fn check_name(name: &str) -> io::Result<()> {
    address(name).map(drop)
}

fn socket() -> io::Result<OwnedFd> {
    let kind = libc::SOCK_SEQPACKET | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: a plain system call; the result is checked.
    let fd = unsafe { libc::socket(libc::AF_UNIX, kind, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: just created, ours alone.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

impl Channel {
    /// Connect to a listening master.
    pub(crate) fn connect(name: &str) -> io::Result<Channel> {
        let (address, length) = address(name)?;
        let fd = socket()?;
        // SAFETY: the address and its length belong together and live through the call.
        let result = unsafe { libc::connect(fd.as_raw_fd(), (&raw const address).cast(), length) };
        if result == 0 { Ok(Channel(fd)) } else { Err(io::Error::last_os_error()) }
    }

    pub(crate) fn fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    /// Send a message, with a descriptor if one is given. A peer that lets its queue fill up is an
    /// error like any other.
    pub(crate) fn send(&self, message: &Message, descriptor: Option<RawFd>) -> io::Result<()> {
        self.send_bytes(&message.encode(), descriptor)
    }

    pub(crate) fn send_bytes(&self, bytes: &[u8], descriptor: Option<RawFd>) -> io::Result<()> {
        let mut part =
            libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
        let mut control = [0u64; 8];
        // SAFETY: all zero is a valid msghdr; the pointers put in live through `sendmsg`, and the
        // control buffer (aligned, 64 bytes) holds one header and one descriptor.
        let sent = unsafe {
            let mut header: libc::msghdr = std::mem::zeroed();
            header.msg_iov = &mut part;
            header.msg_iovlen = 1;
            if let Some(fd) = descriptor {
                header.msg_control = control.as_mut_ptr().cast();
                header.msg_controllen = libc::CMSG_SPACE(size_of::<RawFd>() as u32) as _;
                let first = libc::CMSG_FIRSTHDR(&header);
                (*first).cmsg_level = libc::SOL_SOCKET;
                (*first).cmsg_type = libc::SCM_RIGHTS;
                (*first).cmsg_len = libc::CMSG_LEN(size_of::<RawFd>() as u32) as _;
                libc::CMSG_DATA(first).cast::<RawFd>().write_unaligned(fd);
            }
            libc::sendmsg(self.fd(), &header, libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT)
        };
        if sent == bytes.len() as isize { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Look for a message. It does not block, whatever the peer sends: all descriptors are taken
    /// over, none is closed.
    pub(crate) fn receive(&self) -> Received {
        if self.descriptors_wait() && !self.has_room_for(DESCRIPTORS_MAX) {
            return Received::NoDescriptors;
        }
        let mut bytes = Box::new([0u8; MESSAGE_BYTES]);
        let mut control = [0u64; CONTROL_WORDS];
        let mut descriptors = Vec::new();
        let flags = libc::MSG_DONTWAIT | libc::MSG_CMSG_CLOEXEC | libc::MSG_TRUNC;
        let (size, flags) = self.look(&mut bytes[..], &mut control, &mut descriptors, flags);
        match size {
            0 if descriptors.is_empty() => Received::Closed(None),
            n if n < 0 => {
                let error = io::Error::last_os_error();
                match error.kind() {
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Received::Nothing,
                    _ => Received::Closed(Some(error)),
                }
            }
            n if n as usize != MESSAGE_BYTES || flags & libc::MSG_TRUNC != 0 => {
                Received::Size(n as usize, descriptors)
            }
            _ => Received::Message(bytes, descriptors),
        }
    }

    /// Does the next message carry descriptors? Nothing is taken, and nothing closed.
    fn descriptors_wait(&self) -> bool {
        let (size, flags) =
            self.look(&mut [], &mut [], &mut Vec::new(), libc::MSG_DONTWAIT | libc::MSG_PEEK);
        size >= 0 && flags & libc::MSG_CTRUNC != 0
    }

    /// Has this process room for so many more descriptors?
    fn has_room_for(&self, descriptors: usize) -> bool {
        let mut copies = Vec::with_capacity(descriptors);
        (0..descriptors).all(|_| self.0.try_clone().map(|copy| copies.push(copy)).is_ok())
    }

    /// `recvmsg`: what it returned, and its flags.
    fn look(
        &self,
        bytes: &mut [u8],
        control: &mut [u64],
        descriptors: &mut Vec<OwnedFd>,
        flags: libc::c_int,
    ) -> (isize, libc::c_int) {
        let mut part = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
        // SAFETY: all zero is a valid msghdr; the pointers put in live through `recvmsg`. Only the
        // control messages that the system wrote are walked, and every descriptor in them is new
        // and ours.
        unsafe {
            let mut header: libc::msghdr = std::mem::zeroed();
            header.msg_iov = &mut part;
            header.msg_iovlen = 1;
            if !control.is_empty() {
                header.msg_control = control.as_mut_ptr().cast();
                header.msg_controllen = size_of_val(control) as _;
            }
            let size = libc::recvmsg(self.fd(), &mut header, flags);
            if size >= 0 && !control.is_empty() {
                take_descriptors(&header, descriptors);
            }
            (size, header.msg_flags)
        }
    }

    /// Close it: the peer sees that at once, and what waits in it unread is let go of elsewhere.
    pub(crate) fn close(self, account: &Account) {
        shut_down(&self.0);
        account.dispose(self);
    }
}

/// Nothing comes or goes any more. It does not block.
fn shut_down(fd: &OwnedFd) {
    // SAFETY: a plain system call on our own descriptor.
    unsafe { libc::shutdown(fd.as_raw_fd(), libc::SHUT_RDWR) };
}

/// SAFETY: `header` is as `recvmsg` left it.
unsafe fn take_descriptors(header: &libc::msghdr, into: &mut Vec<OwnedFd>) {
    // SAFETY: the macros walk inside the control buffer; data of SCM_RIGHTS are descriptors that
    // the system has just made for us.
    unsafe {
        let mut at = libc::CMSG_FIRSTHDR(header);
        while !at.is_null() {
            if (*at).cmsg_level == libc::SOL_SOCKET && (*at).cmsg_type == libc::SCM_RIGHTS {
                let bytes = (*at).cmsg_len as usize - libc::CMSG_LEN(0) as usize;
                for index in 0..bytes / size_of::<RawFd>() {
                    let fd = libc::CMSG_DATA(at).cast::<RawFd>().add(index).read_unaligned();
                    into.push(OwnedFd::from_raw_fd(fd));
                }
            }
            at = libc::CMSG_NXTHDR(header, at);
        }
    }
}

/// The file of a listening socket, if its name is one. It goes when this does.
struct SocketFile(String);

impl Drop for SocketFile {
    fn drop(&mut self) {
        if !self.0.starts_with('@') {
            let _ = std::fs::remove_file(&self.0);
        }
    }
}

/// A listening socket.
pub(crate) struct Listener {
    fd: OwnedFd,
    _file: SocketFile,
}

impl Listener {
    /// Listen. A file that nobody listens on any more is replaced.
    pub(crate) fn bind(name: &str) -> io::Result<Listener> {
        let (address, length) = address(name)?;
        let fd = socket()?;
        // SAFETY: the address and its length belong together and live through the call.
        let bind =
            || match unsafe { libc::bind(fd.as_raw_fd(), (&raw const address).cast(), length) } {
                0 => Ok(()),
                _ => Err(io::Error::last_os_error()),
            };
        match bind() {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && is_stale(name) => {
                std::fs::remove_file(name)?;
                bind()?;
            }
            result => result?,
        }
        // SAFETY: a plain system call on our own descriptor.
        if unsafe { libc::listen(fd.as_raw_fd(), BACKLOG) } != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Listener { fd, _file: SocketFile(name.to_owned()) })
    }

    pub(crate) fn fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    /// Close it. Slaves that wait in it, with what they have sent, are let go of elsewhere.
    pub(crate) fn close(self, account: &Account) {
        shut_down(&self.fd); // nobody comes any more
        loop {
            match self.accept() {
                Ok(Some(channel)) => channel.close(account),
                Ok(None) => return, // nobody is left
                Err(_) => return account.dispose(self.fd),
            }
        }
    }

    /// A slave that has connected, if there is one.
    pub(crate) fn accept(&self) -> io::Result<Option<Channel>> {
        let flags = libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        // SAFETY: no address is asked for; the result is checked.
        let fd =
            unsafe { libc::accept4(self.fd(), std::ptr::null_mut(), std::ptr::null_mut(), flags) };
        if fd < 0 {
            let error = io::Error::last_os_error();
            return match error.raw_os_error() {
                Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM) => Err(error),
                _ => Ok(None),
            };
        }
        // SAFETY: just created, ours alone.
        Ok(Some(Channel(unsafe { OwnedFd::from_raw_fd(fd) })))
    }
}

/// A socket's file that nobody listens on.
fn is_stale(name: &str) -> bool {
    use std::os::unix::fs::FileTypeExt;
    !name.starts_with('@')
        && std::fs::symlink_metadata(name).is_ok_and(|m| m.file_type().is_socket())
        && Channel::connect(name).is_err_and(|e| e.kind() == io::ErrorKind::ConnectionRefused)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(name: &str) -> (Channel, Channel) {
        let listener = Listener::bind(name).expect("bind");
        let slave = Channel::connect(name).expect("connect");
        (listener.accept().expect("descriptors").expect("accept"), slave)
    }

    #[test]
    fn a_message_carries_its_descriptor() {
        let (master, slave) = pair(&format!("@quiver-memif-socket-{}", std::process::id()));
        slave.send(&Message::AddRegion { index: 0, size: 4096 }, Some(slave.fd())).expect("send");
        let Received::Message(bytes, descriptors) = master.receive() else { panic!("no message") };
        assert_eq!(Message::decode(&bytes), Ok(Message::AddRegion { index: 0, size: 4096 }));
        assert_eq!(descriptors.len(), 1);
        assert!(matches!(master.receive(), Received::Nothing));
        drop((slave, descriptors));
        assert!(matches!(master.receive(), Received::Closed(None)));
    }

    #[test]
    fn short_and_long_messages_are_seen_as_what_they_are() {
        let (master, slave) = pair(&format!("@quiver-memif-sizes-{}", std::process::id()));
        slave.send_bytes(&[1; 5], None).expect("send");
        slave.send_bytes(&[1; 500], Some(slave.fd())).expect("send");
        assert!(matches!(master.receive(), Received::Size(5, none) if none.is_empty()));
        assert!(matches!(master.receive(), Received::Size(500, one) if one.len() == 1));
    }

    #[test]
    fn a_file_that_nobody_listens_on_is_replaced_and_one_in_use_is_not() {
        let path = std::env::temp_dir().join(format!("quiver-memif-{}.sock", std::process::id()));
        let name = path.to_str().expect("a path in UTF-8");
        let first = Listener::bind(name).expect("bind");
        assert!(Listener::bind(name).is_err());
        drop(first);
        let raw = std::os::unix::net::UnixListener::bind(name).expect("bind");
        drop(raw); // leaves its file behind
        let second = Listener::bind(name).expect("replaced");
        drop(second);
        assert!(!path.exists());
    }
}
