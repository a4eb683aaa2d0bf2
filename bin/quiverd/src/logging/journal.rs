//! The journal of systemd, in its native protocol: one datagram a message, fields by name.

use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::settings::Level;
use super::store::Message;

/// Where the journal listens.
const SOCKET: &str = "/run/systemd/journal/socket";
/// Bytes of a message that are sent; the rest is cut off, so that it fits into a datagram.
const MESSAGE_BYTES_MAX: usize = 32 * 1024;

/// A way to the journal. It never waits: a message that the journal has no room for is lost, and
/// the next one says how many were.
pub struct Journal {
    socket: UnixDatagram,
    path: PathBuf,
    lost: AtomicU64,
}

impl Journal {
    /// The journal that has this program's standard error (systemd.exec(5), `JOURNAL_STREAM`), if
    /// any has.
    pub fn of_this_process() -> Option<Journal> {
        let stream = std::env::var("JOURNAL_STREAM").ok()?;
        is_stream(&stream, io::stderr()).then(|| Journal::at(Path::new(SOCKET)).ok())?
    }

    /// A journal that listens there.
    ///
    /// # Errors
    /// The system refuses a socket.
    pub fn at(path: &Path) -> io::Result<Journal> {
        let socket = UnixDatagram::unbound()?;
        socket.set_nonblocking(true)?;
        Ok(Journal { socket, path: path.to_owned(), lost: AtomicU64::new(0) })
    }

    /// Send a message.
    ///
    /// # Errors
    /// The journal is not there or has no room.
    pub fn send(&self, message: &Message<'_>) -> io::Result<()> {
        let lost = self.lost.load(Ordering::Relaxed);
        let datagram = datagram(message, lost);
        // By its name each time: the journal may have been restarted.
        match self.socket.send_to(&datagram, &self.path) {
            Ok(_) => {
                self.lost.fetch_sub(lost, Ordering::Relaxed);
                Ok(())
            }
            Err(error) => {
                self.lost.fetch_add(1, Ordering::Relaxed);
                Err(error)
            }
        }
    }
}

/// Is the descriptor the stream that `device:inode` names?
fn is_stream(stream: &str, descriptor: impl AsFd) -> bool {
    let Some((device, inode)) = stream.split_once(':') else { return false };
    let Ok(stat) = rustix::fs::fstat(descriptor) else { return false };
    device.parse() == Ok(stat.st_dev) && inode.parse() == Ok(stat.st_ino)
}

fn datagram(message: &Message<'_>, lost: u64) -> Vec<u8> {
    let mut out = Vec::new();
    let mut text = message.text;
    if text.len() > MESSAGE_BYTES_MAX {
        text = &text[..text.floor_char_boundary(MESSAGE_BYTES_MAX)];
    }
    put(&mut out, "MESSAGE", text);
    // RFC 5424 §6.2.1: 0 is the gravest.
    let priority = (message.level as u8).saturating_sub(Level::Emerg as u8);
    put(&mut out, "PRIORITY", &priority.to_string());
    put(&mut out, "SYSLOG_IDENTIFIER", "quiverd");
    put(&mut out, "QUIVER_CLASS", message.class);
    if lost > 0 {
        put(&mut out, "QUIVER_LOST_MESSAGES", &lost.to_string());
    }
    for (name, value) in message.fields {
        let end = value.floor_char_boundary(MESSAGE_BYTES_MAX / 8);
        put(&mut out, &field_name(name), &value[..end]);
    }
    out
}

/// The journal takes capital letters, digits and `_`.
fn field_name(name: &str) -> String {
    let allowed = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    format!("QUIVER_{}", name.chars().take(50).map(allowed).collect::<String>())
}

/// A field; a value of several lines has its length in front.
fn put(out: &mut Vec<u8>, name: &str, value: &str) {
    out.extend_from_slice(name.as_bytes());
    if value.contains('\n') {
        out.push(b'\n');
        out.extend_from_slice(&(value.len() as u64).to_le_bytes());
    } else {
        out.push(b'=');
    }
    out.extend_from_slice(value.as_bytes());
    out.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message<'a>(text: &'a str, fields: &'a [(String, String)]) -> Message<'a> {
        Message { time: "t", level: Level::Warn, class: "memif", text, fields }
    }

    #[test]
    fn a_message_has_its_level_class_and_fields() {
        let folder = std::env::temp_dir().join(format!("quiver-journal-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("socket");
        let journal = Journal::at(&path).unwrap();
        assert!(journal.send(&message("nobody listens", &[])).is_err());
        let listener = UnixDatagram::bind(&path).unwrap();
        let fields = [("peer-name".to_owned(), "a\nb".to_owned())];
        journal.send(&message("one line", &fields)).unwrap();
        let mut buffer = [0; 1024];
        let count = listener.recv(&mut buffer).unwrap();
        assert_eq!(
            &buffer[..count],
            b"MESSAGE=one line\nPRIORITY=4\nSYSLOG_IDENTIFIER=quiverd\nQUIVER_CLASS=memif\n\
              QUIVER_LOST_MESSAGES=1\nQUIVER_PEER_NAME\n\x03\0\0\0\0\0\0\0a\nb\n"
        );
        journal.send(&message("again", &[])).unwrap();
        let count = listener.recv(&mut buffer).unwrap();
        assert!(!String::from_utf8_lossy(&buffer[..count]).contains("LOST"));
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_journal_that_does_not_read_stops_nobody() {
        let folder = std::env::temp_dir().join(format!("quiver-full-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("socket");
        let (journal, _listener) =
            (Journal::at(&path).unwrap(), UnixDatagram::bind(&path).unwrap());
        let long = "x".repeat(2 * MESSAGE_BYTES_MAX);
        let failed = (0..10_000).find(|_| journal.send(&message(&long, &[])).is_err());
        assert!(failed.is_some(), "its queue is bounded, and nobody waits for it");
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn only_the_stream_that_systemd_names_is_the_journals() {
        let file = std::fs::File::open("/dev/null").unwrap();
        let stat = rustix::fs::fstat(&file).unwrap();
        assert!(is_stream(&format!("{}:{}", stat.st_dev, stat.st_ino), &file));
        for other in ["", "1", ":", "x:y", &format!("{}:{}", stat.st_dev, stat.st_ino + 1)] {
            assert!(!is_stream(other, &file), "{other}");
        }
    }
}
