//! Links: what Linux knows of a network device, read and set by ioctl (netdevice(7)).
#![allow(unsafe_code)]

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// Longest name of a link, bytes.
pub const LINK_NAME_MAX: usize = libc::IFNAMSIZ - 1;

/// Why something cannot be done with a link.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// No such link.
    #[error("there is no Linux interface {0}; `ip link` lists them")]
    Unknown(String),
    /// Another kind of link.
    #[error("{0} is not Ethernet")]
    NotEthernet(String),
    /// A name that cannot be.
    #[error(
        "`{0}` is no name of a Linux interface: 1 to {LINK_NAME_MAX} characters without `/` and \
         spaces"
    )]
    BadName(String),
    /// Not allowed.
    #[error(
        "{what}: not permitted; it needs {capability} (run as root, or give it with `setcap \
         {capability}+ep`)"
    )]
    NotPermitted {
        /// What was tried.
        what: String,
        /// What is missing.
        capability: &'static str,
    },
    /// Another error of the system.
    #[error("{what}: {source}")]
    System {
        /// What was tried.
        what: String,
        /// What the system said.
        source: io::Error,
    },
}

impl LinkError {
    /// From an error of the system while doing `what`, which needs `capability`.
    pub fn of(source: io::Error, what: impl Into<String>, capability: &'static str) -> LinkError {
        let what = what.into();
        match source.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => LinkError::NotPermitted { what, capability },
            _ => LinkError::System { what, source },
        }
    }
}

/// What is known of a link now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkState {
    /// Its name; it may have been renamed.
    pub name: String,
    /// Administratively up.
    pub is_up: bool,
    /// It is up, and has a carrier.
    pub is_running: bool,
    /// Its layer 2 address; zero when it is not Ethernet.
    pub mac: [u8; 6],
    /// Is it Ethernet (or a device that looks so)?
    pub is_ethernet: bool,
    /// Largest layer 3 packet, bytes.
    pub mtu_bytes: u32,
}

/// A socket to ask and set links by, in the namespace where it was made.
pub struct LinkSocket(OwnedFd);

#[repr(C)]
struct Ifreq6 {
    address: [u8; 16],
    prefix_length: u32,
    index: i32,
}

fn open(family: i32) -> io::Result<OwnedFd> {
    // SAFETY: a plain system call; the result is checked.
    let fd = unsafe { libc::socket(family, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
    // SAFETY: just created, ours alone.
    if fd < 0 { Err(io::Error::last_os_error()) } else { Ok(unsafe { OwnedFd::from_raw_fd(fd) }) }
}

/// An empty request that names a link.
fn request(name: &str) -> Result<libc::ifreq, LinkError> {
    let fits = !name.is_empty() && name.len() <= LINK_NAME_MAX;
    if !fits || name.contains(['/', '\0']) || name.contains(char::is_whitespace) {
        return Err(LinkError::BadName(name.chars().take(40).collect()));
    }
    // SAFETY: all-zero is a valid request.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (place, byte) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *place = byte as libc::c_char;
    }
    Ok(request)
}

/// Is it a name that a link could have?
///
/// # Errors
/// The name is empty, too long, or has characters that Linux refuses.
pub fn check_name(name: &str) -> Result<(), LinkError> {
    request(name).map(drop)
}

impl LinkSocket {
    /// In the calling thread's namespace.
    ///
    /// # Errors
    /// The system refuses a socket.
    pub fn new() -> io::Result<LinkSocket> {
        open(libc::AF_INET).map(LinkSocket)
    }

    fn ioctl(&self, number: libc::Ioctl, request: &mut libc::ifreq) -> io::Result<()> {
        // SAFETY: every number used below takes an ifreq, which lives through the call.
        let result = unsafe { libc::ioctl(self.0.as_raw_fd(), number, &raw mut *request) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// The index of the link called `name`.
    ///
    /// # Errors
    /// There is no such link, or the system refuses.
    pub fn index_of(&self, name: &str) -> Result<i32, LinkError> {
        let mut request = request(name)?;
        match self.ioctl(libc::SIOCGIFINDEX, &mut request) {
            // SAFETY: SIOCGIFINDEX has written this field.
            Ok(()) => Ok(unsafe { request.ifr_ifru.ifru_ifindex }),
            Err(e) if e.raw_os_error() == Some(libc::ENODEV) => {
                Err(LinkError::Unknown(name.to_owned()))
            }
            Err(source) => Err(LinkError::System { what: format!("index of {name}"), source }),
        }
    }

    /// What is known of the link of this index; `None` when it is gone.
    pub fn state(&self, index: i32) -> Option<LinkState> {
        // SAFETY: all-zero is a valid request.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        request.ifr_ifru.ifru_ifindex = index;
        self.ioctl(libc::SIOCGIFNAME, &mut request).ok()?;
        let name = request.ifr_name;
        let text = name.iter().take_while(|c| **c != 0).map(|c| *c as u8).collect();
        self.ioctl(libc::SIOCGIFFLAGS, &mut request).ok()?;
        // SAFETY: SIOCGIFFLAGS has written this field.
        let flags = i32::from(unsafe { request.ifr_ifru.ifru_flags });
        self.ioctl(libc::SIOCGIFMTU, &mut request).ok()?;
        // SAFETY: SIOCGIFMTU has written this field.
        let mtu = unsafe { request.ifr_ifru.ifru_mtu };
        self.ioctl(libc::SIOCGIFHWADDR, &mut request).ok()?;
        // SAFETY: SIOCGIFHWADDR has written this field.
        let address = unsafe { request.ifr_ifru.ifru_hwaddr };
        let is_ethernet = matches!(address.sa_family, libc::ARPHRD_ETHER | libc::ARPHRD_LOOPBACK);
        let mut mac = [0; 6];
        if is_ethernet {
            mac.iter_mut().zip(address.sa_data).for_each(|(to, from)| *to = from as u8);
        }
        Some(LinkState {
            name: String::from_utf8(text).ok()?,
            is_up: flags & libc::IFF_UP != 0,
            is_running: flags & (libc::IFF_UP | libc::IFF_RUNNING)
                == libc::IFF_UP | libc::IFF_RUNNING,
            mac,
            is_ethernet,
            mtu_bytes: u32::try_from(mtu).unwrap_or(0),
        })
    }

    fn set(
        &self,
        name: &str,
        what: &str,
        number: libc::Ioctl,
        mut request: libc::ifreq,
    ) -> Result<(), LinkError> {
        self.ioctl(number, &mut request)
            .map_err(|e| LinkError::of(e, format!("{what} of {name}"), "cap_net_admin"))
    }

    /// Set a link up or down.
    ///
    /// # Errors
    /// There is no such link, or the system refuses.
    pub fn set_up(&self, name: &str, up: bool) -> Result<(), LinkError> {
        let mut request = request(name)?;
        let what = if up { "setting up" } else { "setting down" };
        self.set(name, what, libc::SIOCGIFFLAGS, request)?;
        let _ = self.ioctl(libc::SIOCGIFFLAGS, &mut request);
        // SAFETY: SIOCGIFFLAGS has written this field.
        let flags = unsafe { request.ifr_ifru.ifru_flags };
        let bit = libc::IFF_UP as libc::c_short;
        request.ifr_ifru.ifru_flags = if up { flags | bit } else { flags & !bit };
        self.set(name, what, libc::SIOCSIFFLAGS, request)
    }

    /// Set a link's layer 2 address.
    ///
    /// # Errors
    /// There is no such link, or the system refuses.
    pub fn set_mac(&self, name: &str, mac: [u8; 6]) -> Result<(), LinkError> {
        let mut request = request(name)?;
        // SAFETY: all-zero is a valid address.
        let mut address: libc::sockaddr = unsafe { std::mem::zeroed() };
        address.sa_family = libc::ARPHRD_ETHER;
        address.sa_data.iter_mut().zip(mac).for_each(|(to, from)| *to = from as libc::c_char);
        request.ifr_ifru.ifru_hwaddr = address;
        self.set(name, "layer 2 address", libc::SIOCSIFHWADDR, request)
    }

    /// Set a link's largest layer 3 packet.
    ///
    /// # Errors
    /// There is no such link, or the system refuses.
    pub fn set_mtu(&self, name: &str, mtu_bytes: u32) -> Result<(), LinkError> {
        let mut request = request(name)?;
        request.ifr_ifru.ifru_mtu = i32::try_from(mtu_bytes).unwrap_or(i32::MAX);
        self.set(name, "MTU", libc::SIOCSIFMTU, request)
    }

    /// Set how many frames may wait to be sent by a link.
    ///
    /// # Errors
    /// There is no such link, or the system refuses.
    pub fn set_queue_length(&self, name: &str, frames: u32) -> Result<(), LinkError> {
        let mut request = request(name)?;
        request.ifr_ifru.ifru_metric = i32::try_from(frames).unwrap_or(i32::MAX);
        self.set(name, "queue length", libc::SIOCSIFTXQLEN, request)
    }

    /// Give a link an IPv4 address.
    ///
    /// # Errors
    /// There is no such link, or the system refuses.
    pub fn add_ip4(&self, name: &str, address: Ipv4Addr, length: u8) -> Result<(), LinkError> {
        let put = |request: &mut libc::ifreq, address: Ipv4Addr| {
            let address = libc::sockaddr_in {
                sin_family: libc::AF_INET as libc::sa_family_t,
                sin_port: 0,
                sin_addr: libc::in_addr { s_addr: address.to_bits().to_be() },
                sin_zero: [0; 8],
            };
            // SAFETY: both are 16 bytes, and any bytes are a valid sockaddr.
            request.ifr_ifru.ifru_addr =
                unsafe { std::mem::transmute::<libc::sockaddr_in, libc::sockaddr>(address) };
        };
        let mut request = request(name)?;
        put(&mut request, address);
        self.set(name, "IPv4 address", libc::SIOCSIFADDR, request)?;
        let mask = u32::MAX.checked_shl(32 - u32::from(length.min(32))).unwrap_or(0);
        put(&mut request, Ipv4Addr::from_bits(mask));
        self.set(name, "IPv4 mask", libc::SIOCSIFNETMASK, request)
    }

    /// Give a link an IPv6 address.
    ///
    /// # Errors
    /// There is no such link, or the system refuses.
    pub fn add_ip6(&self, name: &str, address: Ipv6Addr, length: u8) -> Result<(), LinkError> {
        let index = self.index_of(name)?;
        let wrong = |e| LinkError::of(e, format!("IPv6 address of {name}"), "cap_net_admin");
        let socket = open(libc::AF_INET6).map_err(wrong)?;
        let mut request =
            Ifreq6 { address: address.octets(), prefix_length: u32::from(length), index };
        // SAFETY: on an AF_INET6 socket SIOCSIFADDR takes an in6_ifreq, which this is
        // (linux/ipv6.h).
        let result =
            unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFADDR, &raw mut request) };
        match result {
            0.. => Ok(()),
            _ if io::Error::last_os_error().raw_os_error() == Some(libc::EEXIST) => Ok(()),
            _ => Err(wrong(io::Error::last_os_error())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_is_there_and_other_names_are_not() {
        let socket = LinkSocket::new().expect("socket");
        let index = socket.index_of("lo").expect("lo");
        let state = socket.state(index).expect("state");
        assert_eq!((state.name.as_str(), state.is_ethernet, state.mac), ("lo", true, [0; 6]));
        assert!(matches!(socket.index_of("no-such-link"), Err(LinkError::Unknown(_))));
        assert!(socket.state(1_000_000).is_none());
    }

    #[test]
    fn names_that_no_link_can_have_are_refused() {
        for name in ["", "a/b", "a b", "sixteen-letters-", "\0"] {
            assert!(check_name(name).is_err(), "{name}");
        }
        assert!(check_name("fifteen-letters").is_ok());
    }
}
