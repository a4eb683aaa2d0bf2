//! A routing daemon, by FPM: zebra's `dplane_fpm_nl` connects to a TCP port and sends netlink
//! messages in frames of version, type and length (FRR, zebra/dplane_fpm_nl.c; fpm/fpm.h).
//!
//! A frame is told whole: a route that is removed and added in one frame changes once. After a
//! connection, zebra sends all it has, without saying when that is over: what has not come when it
//! has been silent for a moment is gone. Until then, and while zebra is away, its routes stay.

use std::io::{self, ErrorKind, Read};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use quiver_linux::in_namespace;
use quiver_netlink::Messages;

use super::model::Model;
use super::{Counts, Order, Reader, Shared, WAIT};

/// The version of the protocol.
const VERSION: u8 = 1;
/// Frames that carry netlink messages.
const NETLINK: u8 = 1;
/// Bytes of a frame's header.
const HEADER_BYTES: usize = 4;
/// Bytes that are read at once.
const READ_BYTES: usize = 1 << 18;
/// A daemon that has been silent for so long after it connected has said all.
const SILENCE: Duration = Duration::from_secs(1);
/// All is said after this time in any case.
const SAID_MAX: Duration = Duration::from_secs(60);

/// Begin to follow the daemon that connects to an address of a namespace.
pub(super) fn start(namespace: Option<&str>, address: SocketAddr) -> io::Result<Reader> {
    let listener = in_namespace(namespace, move || TcpListener::bind(address))??;
    listener.set_nonblocking(true)?;
    let (reader, shared) = Reader::new()?;
    let thread = Thread { shared, listener, model: Model::new() };
    std::thread::Builder::new().name("quiver_fpm".into()).spawn(move || thread.run())?;
    Ok(reader)
}

struct Thread {
    shared: Arc<Shared>,
    listener: TcpListener,
    model: Model,
}

/// A daemon that is connected.
struct Session {
    stream: TcpStream,
    /// What was read and is no whole frame yet.
    bytes: Vec<u8>,
    connected: Instant,
    heard: Instant,
    /// Is what it has not said yet still kept?
    is_saying: bool,
}

/// Why a session ends.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum End {
    Closed,
    Fault(&'static str),
    Failed(ErrorKind),
}

impl Thread {
    fn run(mut self) {
        let mut session: Option<Session> = None;
        while !self.shared.is_over() {
            // A daemon that connects anew has lost its old connection: the new one counts.
            if let Ok((stream, from)) = self.listener.accept() {
                match self.begin(stream) {
                    Ok(new) => {
                        tracing::info!("FPM: {from} is connected");
                        Counts::add(&self.shared.counts.dumps, 1);
                        session = Some(new);
                    }
                    Err(error) => tracing::warn!("FPM: {from}: {error}"),
                }
            }
            if let Some(now) = &mut session
                && let Err(end) = read(now, &mut self.model, &self.shared)
            {
                match end {
                    End::Closed => tracing::info!("FPM: the daemon has closed its connection"),
                    End::Fault(what) => tracing::warn!("FPM: {what}; the connection is closed"),
                    End::Failed(kind) => tracing::warn!("FPM: {kind}; the connection is closed"),
                }
                session = None;
            }
            for order in self.shared.take_orders() {
                if let Order::Report(what) = order {
                    self.model.report_again(what);
                }
            }
            self.shared.report(&mut self.model);
            let source = session.as_ref().map_or(self.listener.as_fd(), |now| now.stream.as_fd());
            self.shared.wait(Some(source), WAIT);
        }
    }

    fn begin(&mut self, stream: TcpStream) -> io::Result<Session> {
        stream.set_nonblocking(true)?;
        self.model.objects.begin_dump();
        self.model.routes.begin_dump();
        self.model.labels.begin_dump();
        let now = Instant::now();
        let (connected, heard) = (now, now);
        Ok(Session { stream, bytes: Vec::new(), connected, heard, is_saying: true })
    }
}

/// Read what a daemon has sent, up to [`READ_BYTES`].
fn read(session: &mut Session, model: &mut Model, shared: &Shared) -> Result<(), End> {
    let had = session.bytes.len();
    session.bytes.resize(had + READ_BYTES, 0);
    let got = session.stream.read(&mut session.bytes[had..]);
    session.bytes.truncate(had + *got.as_ref().unwrap_or(&0));
    match got {
        Ok(0) => return Err(End::Closed),
        Ok(_) => session.heard = Instant::now(),
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
        Err(error) => return Err(End::Failed(error.kind())),
    }
    let used = take_frames(&session.bytes, |body| {
        let mut count = 0;
        for message in Messages::of(body) {
            model.take(&message);
            count += 1;
        }
        Counts::add(&shared.counts.messages, count);
    })?;
    session.bytes.drain(..used);
    let is_silent = session.heard.elapsed() > SILENCE || session.connected.elapsed() > SAID_MAX;
    if session.is_saying && is_silent {
        session.is_saying = false;
        model.sweep_objects();
        model.routes.sweep();
        model.labels.sweep();
    }
    Ok(())
}

/// Take whole frames from the front of `bytes`; how many bytes they are.
pub(super) fn take_frames(bytes: &[u8], mut take: impl FnMut(&[u8])) -> Result<usize, End> {
    let mut used = 0;
    while let Some(&[version, kind, high, low]) = bytes[used..].first_chunk::<HEADER_BYTES>() {
        let length = usize::from(u16::from_be_bytes([high, low]));
        if version != VERSION || length < HEADER_BYTES {
            return Err(End::Fault("a frame whose version or length is wrong"));
        }
        let Some(body) = bytes.get(used + HEADER_BYTES..used + length) else { break };
        if kind == NETLINK {
            take(body);
        }
        used += length;
    }
    Ok(used)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_taken_whole_and_faults_end_the_session() {
        let bytes = [1, 1, 0, 6, 7, 8, 1, 2, 0, 5, 9, 1, 1, 0, 9, 1];
        let mut bodies = Vec::new();
        assert_eq!(take_frames(&bytes, |body| bodies.push(body.to_vec())), Ok(11));
        assert_eq!(bodies, [[7, 8]], "only netlink, and no frame that is not whole");
        assert!(take_frames(&[2, 1, 0, 4], |_| ()).is_err());
        assert!(take_frames(&[1, 1, 0, 3, 0], |_| ()).is_err());
        assert_eq!(take_frames(&[1, 1, 0], |_| ()), Ok(0));
    }
}
