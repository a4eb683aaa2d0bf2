//! Work in another network namespace: on a thread of its own, which enters it and ends.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::PathBuf;

/// Where `ip netns` keeps namespaces.
const NAMESPACES: &str = "/run/netns";

/// Where the namespace of a name lies: a path stays one.
pub fn path_of(name: &str) -> PathBuf {
    if name.contains('/') { PathBuf::from(name) } else { PathBuf::from(NAMESPACES).join(name) }
}

/// Do `work` in the namespace called `name` (in ours without a name). What it opens stays in that
/// namespace and can be used from anywhere.
///
/// # Errors
/// There is no such namespace, or the system refuses to enter it.
pub fn in_namespace<R: Send>(name: Option<&str>, work: impl FnOnce() -> R + Send) -> io::Result<R> {
    let Some(name) = name else { return Ok(work()) };
    let path = path_of(name);
    let namespace = File::open(&path).map_err(|e| {
        io::Error::new(e.kind(), format!("network namespace {}: {e}", path.display()))
    })?;
    std::thread::scope(|scope| {
        let thread =
            std::thread::Builder::new().name("quiver_netns".into()).spawn_scoped(scope, || {
                // SAFETY: a plain system call; it changes this thread only, which ends below.
                if unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) } != 0 {
                    let e = io::Error::last_os_error();
                    return Err(io::Error::new(
                        e.kind(),
                        format!("network namespace {}: {e}", path.display()),
                    ));
                }
                Ok(work())
            })?;
        thread.join().map_err(|_| io::Error::other("the thread in the namespace panicked"))?
    })
}
