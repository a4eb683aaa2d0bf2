//! Files that profiles and clients name, read with a limit of their length: a device or a pipe that
//! never ends must not take all memory, and must not stop the control loop.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

/// Read a regular file of at most `bytes_max` bytes.
///
/// # Errors
/// When the path names something else than a regular file, when the file is longer, or when the
/// system refuses to open or read it.
pub fn read(path: &Path, bytes_max: usize) -> io::Result<Vec<u8>> {
    read_if(path, bytes_max, Metadata::is_file)
}

/// Read a regular file or a pipe of at most `bytes_max` bytes; waits for the end of a pipe.
///
/// # Errors
/// As [`read`].
pub fn read_or_pipe(path: &Path, bytes_max: usize) -> io::Result<Vec<u8>> {
    read_if(path, bytes_max, |metadata| metadata.is_file() || metadata.file_type().is_fifo())
}

fn read_if(
    path: &Path,
    bytes_max: usize,
    is_allowed: impl FnOnce(&Metadata) -> bool,
) -> io::Result<Vec<u8>> {
    // Before it is opened: to open a pipe waits for its other end.
    if !is_allowed(&std::fs::metadata(path)?) {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(bytes_max as u64 + 1).read_to_end(&mut bytes)?;
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
    }
}
