//! Where a router and its client meet, when nobody says otherwise.

use std::env;
use std::path::{Path, PathBuf};

/// Overrides the folder.
pub const RUNTIME_DIR_VARIABLE: &str = "QUIVER_RUNTIME_DIR";

/// Overrides the file of the token.
pub const TOKEN_FILE_VARIABLE: &str = "QUIVER_TOKEN_FILE";

/// The file of the token that clients of a generator's TCP port say: `$QUIVER_TOKEN_FILE`, or
/// `tg.token` in the folder for sockets.
pub fn token_file() -> PathBuf {
    env::var_os(TOKEN_FILE_VARIABLE).map_or_else(|| runtime_dir().join("tg.token"), PathBuf::from)
}

/// The folder for the sockets of a router that root started.
const SYSTEM_RUNTIME_DIR: &str = "/run/quiver";

/// The folder for sockets: `$QUIVER_RUNTIME_DIR`, `/run/quiver` for root, otherwise
/// `$XDG_RUNTIME_DIR/quiver` or `/tmp/quiver-UID`.
pub fn runtime_dir() -> PathBuf {
    if let Some(folder) = env::var_os(RUNTIME_DIR_VARIABLE) {
        return folder.into();
    }
    let user = rustix::process::geteuid();
    if user.is_root() {
        return SYSTEM_RUNTIME_DIR.into();
    }
    match env::var_os("XDG_RUNTIME_DIR") {
        Some(folder) => Path::new(&folder).join("quiver"),
        None => env::temp_dir().join(format!("quiver-{}", user.as_raw())),
    }
}

/// The folder in which a client finds a router: [`runtime_dir`], or that of root's router when the
/// client's user has started none.
pub fn router_dir() -> PathBuf {
    let own = runtime_dir();
    let is_own = env::var_os(RUNTIME_DIR_VARIABLE).is_some() || own.is_dir();
    if is_own { own } else { SYSTEM_RUNTIME_DIR.into() }
}

/// The socket for plain command lines in a runtime folder.
pub fn cli_socket(runtime_dir: &Path) -> PathBuf {
    runtime_dir.join("cli.sock")
}

/// The socket for JSON-RPC in a runtime folder.
pub fn api_socket(runtime_dir: &Path) -> PathBuf {
    runtime_dir.join("api.sock")
}
