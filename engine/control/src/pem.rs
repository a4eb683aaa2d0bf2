//! Certificates and keys in files, in PEM (RFC 7468).

use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject;

use crate::error::Refusal;

/// Largest file.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// What is wrong with a file.
pub(crate) fn faulty(path: &Path, error: &dyn std::fmt::Display) -> Refusal {
    Refusal::new(format!("{}: {error}", path.display()))
}

/// All of a kind in a file, at least one.
///
/// # Errors
/// The file cannot be read, or has none.
pub(crate) fn all<T: PemObject>(path: &Path) -> Result<Vec<T>, Refusal> {
    let text = contents(path)?;
    let found = T::pem_slice_iter(&text).collect::<Result<Vec<T>, _>>();
    match found.map_err(|error| faulty(path, &error))? {
        none if none.is_empty() => Err(faulty(path, &"there is none of the kind in it, in PEM")),
        found => Ok(found),
    }
}

/// The private key in a file, which others may not read.
///
/// # Errors
/// Others may read or change it, or there is none in the file.
pub(crate) fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, Refusal> {
    let about = std::fs::metadata(path).map_err(|error| faulty(path, &error))?;
    if about.mode() & 0o007 != 0 {
        let refusal = faulty(path, &"every user of this machine can read or change the key");
        return Err(
            refusal.remedy("chmod o= takes that away; make a new key if they could read it")
        );
    }
    PrivateKeyDer::from_pem_slice(&contents(path)?).map_err(|error| faulty(path, &error))
}

fn contents(path: &Path) -> Result<Vec<u8>, Refusal> {
    let mut bytes = Vec::new();
    let read = File::open(path)
        .and_then(|file| file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes))
        .map_err(|error| faulty(path, &error))?;
    match read as u64 > FILE_BYTES_MAX {
        true => Err(faulty(path, &format!("more than {FILE_BYTES_MAX} bytes"))),
        false => Ok(bytes),
    }
}
