//! JSON-RPC from elsewhere: TLS 1.3 (RFC 8446), where both sides show a certificate.
//!
//! A client has the name that its certificate gives it: the DNS names and URIs among its subject
//! alternative names (RFC 5280 section 4.2.1.6). The certificates are read again when their files
//! change; one that cannot be read is said in the log, and the ones before stay.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection};

use crate::error::Refusal;
use crate::pem::{all, faulty, private_key};
use crate::rights::Role;

/// The files of a door are looked at this often at most.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Longest name of a client in the log.
const NAME_CHARS_MAX: usize = 64;

/// Where clients with certificates come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsDoor {
    /// Where to listen.
    pub address: SocketAddr,
    /// The router's certificate and those that lead to one that clients trust, in PEM.
    pub certificate: PathBuf,
    /// Its private key, in PEM, which others may not read.
    pub key: PathBuf,
    /// Whose certificates clients must have, in PEM.
    pub client_ca: PathBuf,
    /// Certificates of clients that are revoked, in PEM.
    pub client_crl: Option<PathBuf>,
    /// Names of the clients that are operators; the others only look.
    pub operators: Vec<String>,
}

/// What tells two versions of a file apart.
type Stamp = Option<(u64, i64, i64, u64)>;

/// A door with what was read of its files.
pub(crate) struct Door {
    wanted: TlsDoor,
    listener: TcpListener,
    /// `None`: they could never be read.
    config: Option<Arc<ServerConfig>>,
    operators: Arc<[String]>,
    stamps: Vec<Stamp>,
    looked: Instant,
}

impl Door {
    /// Listen. Without readable certificates it turns every client away, and goes on to look.
    ///
    /// # Errors
    /// The address cannot be listened on.
    pub(crate) fn open(wanted: TlsDoor) -> Result<Door, Refusal> {
        let address = wanted.address;
        let listener = TcpListener::bind(address)
            .map_err(|error| Refusal::new(format!("cannot listen at {address}: {error}")))?;
        listener.set_nonblocking(true)?;
        let (operators, looked) = (wanted.operators.clone().into(), Instant::now());
        let mut door =
            Door { wanted, listener, config: None, operators, stamps: Vec::new(), looked };
        door.read();
        Ok(door)
    }

    /// The socket.
    pub(crate) fn listener(&self) -> &TcpListener {
        &self.listener
    }

    /// The next client.
    ///
    /// # Errors
    /// Nobody is there, or the system refuses.
    pub(crate) fn accept(&mut self) -> io::Result<Option<Tls>> {
        let (stream, from) = self.listener.accept()?;
        if self.looked.elapsed() >= LOOK_EVERY && self.stamps != self.stamps_now() {
            self.read();
        }
        let Some(config) = self.config.clone() else {
            tracing::warn!("{from} is turned away: there is no certificate for the API");
            return Ok(None);
        };
        let connection = ServerConnection::new(config).map_err(io::Error::other)?;
        let operators = self.operators.clone();
        Ok(Some(Tls { connection, stream, from, operators, is_known: false }))
    }

    fn files(&self) -> impl Iterator<Item = &Path> {
        let TlsDoor { certificate, key, client_ca, client_crl, .. } = &self.wanted;
        [certificate, key, client_ca].into_iter().chain(client_crl).map(PathBuf::as_path)
    }

    fn stamps_now(&self) -> Vec<Stamp> {
        let stamp = |path: &Path| {
            let about = std::fs::metadata(path).ok()?;
            Some((about.ino(), about.mtime(), about.mtime_nsec(), about.len()))
        };
        self.files().map(stamp).collect()
    }

    fn read(&mut self) {
        (self.stamps, self.looked) = (self.stamps_now(), Instant::now());
        match config(&self.wanted) {
            Ok(config) => {
                tracing::info!("the API's certificate is {}", self.wanted.certificate.display());
                self.config = Some(Arc::new(config));
            }
            Err(refusal) => tracing::error!("the API's certificates: {refusal}"),
        }
    }
}

fn config(wanted: &TlsDoor) -> Result<ServerConfig, Refusal> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let mut roots = RootCertStore::empty();
    for certificate in all::<CertificateDer<'static>>(&wanted.client_ca)? {
        roots.add(certificate).map_err(|error| faulty(&wanted.client_ca, &error))?;
    }
    let crls: Vec<CertificateRevocationListDer<'static>> =
        wanted.client_crl.as_deref().map_or(Ok(Vec::new()), all)?;
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone())
        .with_crls(crls)
        .only_check_end_entity_revocation()
        .build()
        .map_err(|error| faulty(&wanted.client_ca, &error))?;
    let key = private_key(&wanted.key)?;
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(|error| faulty(&wanted.key, &error))?
        .with_client_cert_verifier(verifier)
        .with_single_cert(all(&wanted.certificate)?, key)
        .map_err(|error| faulty(&wanted.certificate, &error))?;
    // A client that comes again shows its certificate again: it may be revoked.
    config.session_storage = Arc::new(rustls::server::NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(config)
}

/// A connection with a client that shows a certificate.
pub(crate) struct Tls {
    connection: ServerConnection,
    stream: TcpStream,
    from: SocketAddr,
    operators: Arc<[String]>,
    is_known: bool,
}

/// A client whose certificate is good.
pub(crate) struct Known {
    /// The first of its names, or where it comes from.
    pub(crate) name: String,
    pub(crate) role: Role,
}

impl Tls {
    pub(crate) fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Where it comes from.
    pub(crate) fn from(&self) -> SocketAddr {
        self.from
    }

    /// Who it is, once: when its certificate was found to be good.
    pub(crate) fn introduced(&mut self) -> Option<Known> {
        if self.is_known || self.connection.is_handshaking() {
            return None;
        }
        self.is_known = true;
        let names = self.connection.peer_certificates().and_then(<[_]>::first).map(names_of);
        let names = names.unwrap_or_default();
        let is_operator = names.iter().any(|name| self.operators.contains(name));
        let role = if is_operator { Role::Operator } else { Role::ReadOnly };
        let name: String = names
            .first()
            .map_or("without a name", |name| name)
            .chars()
            .filter(|c| !c.is_control())
            .take(NAME_CHARS_MAX)
            .collect();
        Some(Known { name, role })
    }

    /// Read what the client says. Handshakes go on meanwhile.
    ///
    /// # Errors
    /// Nothing is there, the connection breaks, or its certificate is not good.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.connection.reader().read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                read => return read,
            }
            if self.connection.read_tls(&mut self.stream)? == 0 {
                return Ok(0);
            }
            let processed = self.connection.process_new_packets();
            match self.send() {
                Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
                _ => {}
            }
            if let Err(error) = processed {
                if !self.is_known {
                    tracing::warn!("a client from {} is refused: {error}", self.from);
                }
                return Err(io::Error::other(error));
            }
        }
    }

    /// Has it said something that [`read`](Self::read) returns without the socket?
    pub(crate) fn has_text(&mut self) -> bool {
        self.connection.process_new_packets().is_ok_and(|state| state.plaintext_bytes_to_read() > 0)
    }

    /// Take what is to be told, as much as there is room for.
    ///
    /// # Errors
    /// There is no room until the client has read, or the connection breaks.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.send()?;
        self.connection.writer().write(bytes)
    }

    /// Is something on its way to the socket?
    pub(crate) fn is_sending(&self) -> bool {
        self.connection.wants_write()
    }

    /// Hand to the socket what is on its way.
    ///
    /// # Errors
    /// The socket takes no more now, or the connection breaks.
    pub(crate) fn send(&mut self) -> io::Result<()> {
        while self.connection.wants_write() {
            self.connection.write_tls(&mut self.stream)?;
        }
        Ok(())
    }
}

impl Drop for Tls {
    fn drop(&mut self) {
        self.connection.send_close_notify();
        let _ = self.send();
    }
}

/// The names that a certificate gives its owner.
fn names_of(certificate: &CertificateDer<'_>) -> Vec<String> {
    let Ok(certificate) = webpki::EndEntityCert::try_from(certificate) else { return Vec::new() };
    let names = certificate.valid_dns_names().chain(certificate.valid_uri_names());
    names.map(str::to_owned).collect()
}
