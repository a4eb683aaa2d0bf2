//! Standard input and output as one more client.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::thread;

use rustix::event::{PollFd, PollFlags, poll};
use signal_hook::consts::SIGTERM;

/// Bytes moved at once.
const PIECE_BYTES: usize = 64 * 1024;

/// The server's end. When standard input ends, pending requests are still answered, and then the
/// program gets SIGTERM; when the reader of standard output is gone, it gets it at once.
///
/// # Errors
/// When the system gives no socket pair or no thread.
pub fn client() -> io::Result<UnixStream> {
    let (ours, theirs) = UnixStream::pair()?;
    let requests = ours.try_clone()?;
    thread::Builder::new().name("quiver-stdin".into()).spawn(move || {
        let ended = copy(io::stdin(), &requests);
        let _ = requests.shutdown(if ended.is_ok() { Shutdown::Write } else { Shutdown::Both });
        // Without interest, poll reports only that the reader is gone.
        let out = io::stdout();
        if poll(&mut [PollFd::new(&out, PollFlags::empty())], None).is_ok() {
            let _ = requests.shutdown(Shutdown::Both);
        }
    })?;
    thread::Builder::new().name("quiver-stdout".into()).spawn(move || {
        let _ = copy(&ours, io::stdout());
        let _ = ours.shutdown(Shutdown::Both);
        let _ = signal_hook::low_level::raise(SIGTERM);
    })?;
    Ok(theirs)
}

fn copy(mut from: impl Read, mut to: impl Write) -> io::Result<()> {
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        match from.read(&mut piece) {
            Ok(0) => return Ok(()),
            Ok(length) => {
                to.write_all(&piece[..length])?;
                to.flush()?;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
