//! Files that profiles and clients name, read with a limit of their length: a device or a pipe that
//! never ends must not take all memory, and must not stop the control loop.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;

/// Read a regular file of at most `bytes_max` bytes.
///
/// # Errors
/// When the path names something else than a regular file, when the file is longer, or when the
/// system refuses to open or read it.
pub fn read(path: &Path, bytes_max: usize) -> io::Result<Vec<u8>> {
    // A pipe is opened without its other end, and then refused.
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits();
    let file = OpenOptions::new().read(true).custom_flags(flags as i32).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    read_open(file, bytes_max)
}

/// Make a file to write to, or empty the one that is there. Neither opening it nor writing to it
/// waits for somebody else.
///
/// # Errors
/// When the path names a pipe that nobody reads, or when the system refuses.
pub fn create(path: &Path) -> io::Result<File> {
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits();
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false).custom_flags(flags as i32);
    let file = options.open(path)?;
    if file.metadata()?.is_file() {
        file.set_len(0)?;
    }
    Ok(file)
}

/// Read a regular file or a pipe of at most `bytes_max` bytes; waits for the end of a pipe.
///
/// # Errors
/// As [`read`].
pub fn read_or_pipe(path: &Path, bytes_max: usize) -> io::Result<Vec<u8>> {
    if std::fs::metadata(path)?.file_type().is_fifo() {
        return read_open(File::open(path)?, bytes_max);
    }
    read(path, bytes_max)
}

fn read_open(file: File, bytes_max: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(bytes_max as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > bytes_max {
        return Err(io::Error::other(format!("it is longer than {bytes_max} bytes")));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_regular_file_within_the_limit_is_read() {
        let path = std::env::temp_dir().join(format!("quiver-tg-bounded-{}", std::process::id()));
        std::fs::write(&path, b"four").expect("a file");
        assert_eq!(read(&path, 4).expect("bytes"), b"four");
        let longer = read(&path, 3).expect_err("longer than the limit");
        std::fs::remove_file(&path).expect("removed");
        assert_eq!(longer.to_string(), "it is longer than 3 bytes");
        for endless in ["/dev/zero", "/"] {
            let refused = read_or_pipe(Path::new(endless), 3).expect_err("no regular file");
            assert_eq!(refused.to_string(), "it is not a regular file", "{endless}");
        }
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, 0o600.into()).expect("a pipe");
        let refused = read(&path, 3).expect_err("a pipe without a writer");
        assert_eq!(refused.to_string(), "it is not a regular file");
        create(&path).expect_err("a pipe without a reader");
        std::fs::remove_file(&path).expect("removed");
        std::fs::write(&path, b"four").expect("a file");
        drop(create(&path).expect("an empty file"));
        assert_eq!(std::fs::read(&path).expect("bytes"), b"");
        std::fs::remove_file(&path).expect("removed");
    }
}
