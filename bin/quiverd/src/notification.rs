//! Messages to the service manager that started the router: sd_notify(3), without libsystemd.
//!
//! The service manager names a datagram socket in `NOTIFY_SOCKET`. Each message is one datagram of
//! lines `VARIABLE=VALUE`. Without that variable nothing is sent.

use std::env;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::rc::Rc;
use std::time::Duration;

use quiver_core::Engine;

/// Names the socket of the service manager.
pub const SOCKET_VARIABLE: &str = "NOTIFY_SOCKET";
/// The service manager restarts a service that sends no `WATCHDOG=1` for so many microseconds.
const WATCHDOG_VARIABLE: &str = "WATCHDOG_USEC";
/// The process that the watchdog is for; any process when it is not set.
const WATCHDOG_PROCESS_VARIABLE: &str = "WATCHDOG_PID";
/// How long a message that must arrive waits for a service manager that does not read.
const WAIT: Duration = Duration::from_secs(1);
/// How often the line of `systemctl status` is compared with what the router does.
const STATUS_NS: u64 = 5_000_000_000;
/// The shortest period of `WATCHDOG=1`, whatever the service manager wants.
const WATCHDOG_NS_MIN: u64 = 10_000_000;
/// A start that makes progress may take so much longer, microseconds.
const EXTENSION_USEC: u64 = 60_000_000;

/// The service manager, or nothing where there is none.
pub struct ServiceManager {
    socket: Option<(UnixDatagram, SocketAddr)>,
    watchdog: Option<Duration>,
}

impl ServiceManager {
    /// Reads the environment. A socket that cannot be used is said in the log, and nothing is sent.
    pub fn from_environment() -> ServiceManager {
        let name = env::var_os(SOCKET_VARIABLE).filter(|name| !name.is_empty());
        let socket = name.and_then(|name| match open(name.as_bytes()) {
            Ok(socket) => Some(socket),
            Err(error) => {
                tracing::warn!("{SOCKET_VARIABLE} {}: {error}", name.display());
                None
            }
        });
        let read = |variable| env::var(variable).ok();
        let process = std::process::id();
        let watchdog = watchdog(read(WATCHDOG_VARIABLE), read(WATCHDOG_PROCESS_VARIABLE), process);
        ServiceManager { socket, watchdog }
    }

    /// The router forwards and takes commands.
    pub fn ready(&self, status: &str) {
        self.send_surely(&format!("READY=1\nSTATUS={}", one_line(status)));
    }

    /// The router ends.
    pub fn stopping(&self) {
        self.send_surely("STOPPING=1\nSTATUS=ends");
    }

    /// Sends that the router reloads, does it, and sends that it is ready again.
    pub fn reload(&self, reload: impl FnOnce()) {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        let usec = now.tv_sec * 1_000_000 + now.tv_nsec / 1_000;
        self.send_surely(&format!("RELOADING=1\nMONOTONIC_USEC={usec}"));
        reload();
        self.send_surely("READY=1");
    }

    /// The start makes progress: its time limit is counted from now.
    pub fn starting(&self, status: &str) {
        self.send(&format!("EXTEND_TIMEOUT_USEC={EXTENSION_USEC}\nSTATUS={}", one_line(status)));
    }

    /// From now on the control loop sends `WATCHDOG=1`, twice in the time that the service manager
    /// allows, and the status when it changes.
    pub fn watch(self: &Rc<Self>, engine: &mut Engine) {
        if self.socket.is_none() {
            return;
        }
        if let Some(allowed) = self.watchdog {
            let period_ns = u64::try_from(allowed.as_nanos() / 2).unwrap_or(u64::MAX);
            let manager = self.clone();
            engine.every(period_ns.max(WATCHDOG_NS_MIN), move |_| manager.send("WATCHDOG=1"));
        }
        let (manager, mut last) = (self.clone(), String::new());
        engine.every(STATUS_NS, move |engine| {
            let status = status(engine);
            if status != last {
                manager.send(&format!("STATUS={status}"));
                last = status;
            }
        });
    }

    /// Sends a message, and waits a moment for a service manager that does not read.
    fn send_surely(&self, message: &str) {
        let Some((socket, address)) = &self.socket else { return };
        let sent = socket
            .set_nonblocking(false)
            .and_then(|()| socket.send_to_addr(message.as_bytes(), address))
            .and_then(|_| socket.set_nonblocking(true));
        if let Err(error) = sent {
            let first = message.lines().next().unwrap_or_default();
            tracing::warn!("{SOCKET_VARIABLE}: {first} was not taken: {error}");
        }
    }

    /// Sends a message without waiting. One that is lost is followed by another.
    fn send(&self, message: &str) {
        if let Some((socket, address)) = &self.socket {
            let _ = socket.send_to_addr(message.as_bytes(), address);
        }
    }
}

/// A socket, and the address of the service manager: a path, or `@` and an abstract name.
fn open(name: &[u8]) -> io::Result<(UnixDatagram, SocketAddr)> {
    let address = match name {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
        [b'/', ..] => SocketAddr::from_pathname(std::ffi::OsStr::from_bytes(name))?,
        _ => return Err(io::Error::other("neither a path nor an abstract name")),
    };
    let socket = UnixDatagram::unbound()?;
    socket.set_write_timeout(Some(WAIT))?;
    socket.set_nonblocking(true)?;
    Ok((socket, address))
}

/// The time that the service manager allows between two `WATCHDOG=1` of this process.
fn watchdog(usec: Option<String>, process: Option<String>, own: u32) -> Option<Duration> {
    if process.is_some_and(|process| process.parse() != Ok(own)) {
        return None;
    }
    let usec = usec?.parse().ok().filter(|usec| *usec > 0)?;
    Some(Duration::from_micros(usec))
}

/// A status is one line.
fn one_line(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}

/// What the router does, for `systemctl status`.
fn status(engine: &Engine) -> String {
    let (mut up, mut all) = (0, 0);
    for interface in engine.all_interfaces() {
        all += 1;
        up += usize::from(interface.row().up);
    }
    format!("forwards; {up} of {all} interfaces are up")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_watchdog_is_for_the_process_that_it_names() {
        let allowed = |usec: &str, process: Option<&str>| {
            watchdog(Some(usec.to_owned()), process.map(str::to_owned), 7)
        };
        assert_eq!(allowed("30000000", None), Some(Duration::from_secs(30)));
        assert_eq!(allowed("30000000", Some("7")), Some(Duration::from_secs(30)));
        assert_eq!(allowed("30000000", Some("8")), None);
        assert_eq!(allowed("0", None), None);
        assert_eq!(allowed("soon", None), None);
        assert_eq!(watchdog(None, None, 7), None);
    }

    #[test]
    fn messages_arrive_at_a_path_and_at_an_abstract_name() {
        let name = format!("quiver-notification-{}", std::process::id());
        let path = std::env::temp_dir().join(&name);
        let _ = std::fs::remove_file(&path);
        let by_path = UnixDatagram::bind(&path).unwrap();
        let abstract_address = SocketAddr::from_abstract_name(&name).unwrap();
        let by_name = UnixDatagram::bind_addr(&abstract_address).unwrap();
        let names = [path.to_str().unwrap().to_owned(), format!("@{name}")];
        for (listener, name) in [by_path, by_name].iter().zip(names) {
            let socket = open(name.as_bytes()).unwrap();
            let manager = ServiceManager { socket: Some(socket), watchdog: None };
            manager.ready("two\nlines");
            let mut buffer = [0; 256];
            let bytes = listener.recv(&mut buffer).unwrap();
            assert_eq!(&buffer[..bytes], b"READY=1\nSTATUS=two lines");
        }
        std::fs::remove_file(path).unwrap();
        assert!(open(b"vsock:2:1234").is_err());
    }

    #[test]
    fn a_service_manager_that_does_not_read_holds_nothing_up() {
        let path = std::env::temp_dir().join(format!("quiver-deaf-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let _deaf = UnixDatagram::bind(&path).unwrap();
        let socket = open(path.as_os_str().as_bytes()).unwrap();
        let manager = ServiceManager { socket: Some(socket), watchdog: None };
        for _ in 0..10_000 {
            manager.send("WATCHDOG=1");
        }
        std::fs::remove_file(path).unwrap();
    }
}
