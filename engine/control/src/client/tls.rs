//! A router elsewhere, over TLS 1.3 (RFC 8446): both sides show a certificate.

use std::io;
use std::net::{TcpStream, ToSocketAddrs as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use super::Duplex;
use crate::error::Refusal;
use crate::pem::{all, faulty, private_key};

/// The longest wait for a connection.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);

/// A router elsewhere, and the files by which both sides know each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remote {
    /// HOST:PORT; the router's certificate is for this host.
    pub place: String,
    /// Our certificate and those that lead to one that the router trusts, in PEM.
    pub certificate: PathBuf,
    /// Its private key, in PEM, which others may not read.
    pub key: PathBuf,
    /// Whose certificate the router must have, in PEM.
    pub ca: PathBuf,
}

pub(super) type Stream = StreamOwned<ClientConnection, TcpStream>;

impl Duplex for Stream {
    fn set_patience(&self, patience: Duration) -> io::Result<()> {
        self.sock.set_nodelay(true)?;
        self.sock.set_read_timeout(Some(patience))
    }
}

impl Remote {
    /// Connect, and know each other.
    ///
    /// # Errors
    /// A file is not as it must be, nobody answers, or one side does not trust the other.
    pub(super) fn connect(&self) -> Result<Stream, Refusal> {
        let host = self.place.rsplit_once(':').map(|(host, _)| host.trim_matches(['[', ']']));
        let host = host.ok_or_else(|| Refusal::new("a place is HOST:PORT"))?.to_owned();
        let name = ServerName::try_from(host)
            .map_err(|_| Refusal::new("its host is neither a name nor an address"))?;
        let connection = ClientConnection::new(Arc::new(self.config()?), name)
            .map_err(|error| Refusal::new(error.to_string()))?;
        let mut stream = StreamOwned::new(connection, self.reach()?);
        while stream.conn.is_handshaking() {
            stream.conn.complete_io(&mut stream.sock).map_err(|error| match error.kind() {
                io::ErrorKind::WouldBlock => Refusal::new("it does not answer by TLS"),
                _ => Refusal::new(error.to_string()),
            })?;
        }
        Ok(stream)
    }

    /// Connect to the first address that answers.
    fn reach(&self) -> io::Result<TcpStream> {
        let mut why = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
        for address in self.place.to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, CONNECT_WITHIN) {
                Ok(stream) => {
                    stream.set_read_timeout(Some(CONNECT_WITHIN))?;
                    return Ok(stream);
                }
                Err(error) => why = error,
            }
        }
        Err(why)
    }

    fn config(&self) -> Result<ClientConfig, Refusal> {
        let mut roots = RootCertStore::empty();
        for certificate in all::<CertificateDer<'static>>(&self.ca)? {
            roots.add(certificate).map_err(|error| faulty(&self.ca, &error))?;
        }
        ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(|error| Refusal::new(error.to_string()))?
            .with_root_certificates(roots)
            .with_client_auth_cert(all(&self.certificate)?, private_key(&self.key)?)
            .map_err(|error| faulty(&self.certificate, &error))
    }
}
