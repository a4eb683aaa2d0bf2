//! The token that clients over TCP say: everybody on a machine can reach a port of it.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use crate::error::Refusal;

/// Random bytes of a token.
const TOKEN_BYTES: usize = 32;

/// Longest token that is read.
const TOKEN_BYTES_MAX: u64 = 1024;

/// A secret that a client must say.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(Vec<u8>);

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(…)")
    }
}

impl Token {
    /// The token in a file, which is made when it is not there, for its owner alone to read.
    ///
    /// # Errors
    /// The file can neither be read nor made, or others may read it.
    pub fn in_file(path: &Path) -> Result<Token, Refusal> {
        let failed =
            |error: std::io::Error| Refusal::new(format!("token file {}: {error}", path.display()));
        let new = File::options().write(true).create_new(true).mode(0o600).open(path);
        match new {
            Ok(mut file) => {
                let mut bytes = [0; TOKEN_BYTES];
                File::open("/dev/urandom")
                    .and_then(|mut random| random.read_exact(&mut bytes))
                    .map_err(failed)?;
                let text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
                writeln!(file, "{text}").map_err(failed)?;
                Ok(Token(text.into_bytes()))
            }
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Token::read(path),
            Err(error) => Err(failed(error)),
        }
    }

    fn read(path: &Path) -> Result<Token, Refusal> {
        let failed =
            |error: std::io::Error| Refusal::new(format!("token file {}: {error}", path.display()));
        let file = File::open(path).map_err(failed)?;
        let about = file.metadata().map_err(failed)?;
        let own = rustix::process::geteuid().as_raw();
        if !about.is_file()
            || about.permissions().mode() & 0o077 != 0
            || ![0, own].contains(&about.uid())
        {
            let refusal = Refusal::new(format!(
                "token file {}: others can read or change it",
                path.display()
            ));
            return Err(refusal
                .remedy("remove it, and a new one is made; or chmod 600, chown to this user"));
        }
        let mut text = String::new();
        file.take(TOKEN_BYTES_MAX).read_to_string(&mut text).map_err(failed)?;
        match text.trim() {
            "" => {
                Err(Refusal::new(format!("token file {} is empty", path.display()))
                    .remedy("remove it"))
            }
            token => Ok(Token(token.as_bytes().to_vec())),
        }
    }

    /// Is this the token? Takes as long for every text of its length.
    pub(crate) fn is(&self, said: &str) -> bool {
        let said = said.as_bytes();
        let differ = self.0.iter().zip(said).fold(0, |differ, (a, b)| differ | (a ^ b));
        std::hint::black_box(differ) == 0 && said.len() == self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_made_once_for_its_owner_alone() {
        let path = std::env::temp_dir().join(format!("quiver-token-{}", std::process::id()));
        let first = Token::in_file(&path).unwrap();
        assert_eq!(Token::in_file(&path).unwrap(), first);
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.trim().len() == 64 && first.is(text.trim()));
        assert!(
            !first.is("")
                && !first.is(&text.trim()[1..])
                && !first.is(&text.replace(['0', '1'], "2"))
        );
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        assert!(Token::in_file(&path).unwrap_err().to_string().contains("others can read"));
        std::fs::remove_file(&path).unwrap();
    }
}
