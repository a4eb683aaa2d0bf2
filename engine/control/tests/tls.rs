//! Clients with certificates: who gets in, what they may do, and those that misbehave.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use quiver_control::{Limits, TlsDoor};
use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, IsCa, Issuer,
    KeyIdMethod, KeyPair, RevokedCertParams, SerialNumber, date_time_ymd,
};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use serde_json::{Value, json};

use crate::server::Running;

/// The name of an operator, and of somebody who only looks.
const OPERATOR: &str = "operator.example";
const WATCHER: &str = "watcher.example";

/// Somebody who makes certificates.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

/// A certificate with its key, in PEM.
struct Owned {
    certificate: String,
    key: String,
}

impl Authority {
    fn new() -> Authority {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Authority { issuer: Issuer::new(params, key), pem }
    }

    fn give(&self, name: &str, change: impl FnOnce(&mut CertificateParams)) -> Owned {
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap().pem();
        Owned { certificate, key: key.serialize_pem() }
    }

    /// A list on which the certificate with this number is revoked.
    fn revoke(&self, number: u64) -> String {
        let revoked = RevokedCertParams {
            serial_number: SerialNumber::from(number),
            revocation_time: date_time_ymd(2024, 1, 1),
            reason_code: None,
            invalidity_date: None,
        };
        let list = CertificateRevocationListParams {
            this_update: date_time_ymd(2024, 1, 1),
            next_update: date_time_ymd(2124, 1, 1),
            crl_number: SerialNumber::from(1),
            issuing_distribution_point: None,
            revoked_certs: vec![revoked],
            key_identifier_method: KeyIdMethod::Sha256,
        };
        list.signed_by(&self.issuer).unwrap().pem().unwrap()
    }
}

/// A router with a door for certificates, and those who make them.
struct Guarded {
    router: Running,
    routers: Authority,
    clients: Authority,
    folder: PathBuf,
}

impl Drop for Guarded {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn write(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
}

impl Guarded {
    fn start(name: &str) -> Guarded {
        Guarded::start_with(name, Limits::default(), |_| {})
    }

    fn start_with(name: &str, limits: Limits, change: impl FnOnce(&mut TlsDoor)) -> Guarded {
        let folder = std::env::temp_dir().join(format!("quiver-tls-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (routers, clients) = (Authority::new(), Authority::new());
        let own = routers.give("router.example", |_| {});
        let file = |name: &str| folder.join(name);
        write(&file("certificate"), &own.certificate);
        write(&file("key"), &own.key);
        write(&file("ca"), &clients.pem);
        let mut door = TlsDoor {
            address: ([127, 0, 0, 1], 0).into(),
            certificate: file("certificate"),
            key: file("key"),
            client_ca: file("ca"),
            client_crl: None,
            operators: vec![OPERATOR.to_owned()],
        };
        change(&mut door);
        let router = Running::start_with(&format!("tls-{name}"), limits, None, Some(door));
        Guarded { router, routers, clients, folder }
    }

    fn socket(&self) -> TcpStream {
        let stream = TcpStream::connect(self.router.tls.unwrap()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        stream
    }

    /// Connect with a certificate, or without one.
    fn connect(&self, own: Option<&Owned>) -> Session {
        let mut roots = RootCertStore::empty();
        let ca = CertificateDer::from_pem_slice(self.routers.pem.as_bytes()).unwrap();
        roots.add(ca).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        let config = match own {
            None => config.with_no_client_auth(),
            Some(Owned { certificate, key }) => {
                let certificate = CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap();
                let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
                config.with_client_auth_cert(vec![certificate], key).unwrap()
            }
        };
        let name = ServerName::try_from("router.example").unwrap();
        let connection = ClientConnection::new(Arc::new(config), name).unwrap();
        BufReader::new(StreamOwned::new(connection, self.socket()))
    }
}

type Session = BufReader<StreamOwned<ClientConnection, TcpStream>>;

fn call(session: &mut Session, method: &str, params: &Value) -> Result<Value, std::io::Error> {
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    writeln!(session.get_mut(), "{request}")?;
    session.get_mut().flush()?;
    loop {
        let mut line = String::new();
        if session.read_line(&mut line)? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        let message: Value = serde_json::from_str(&line).unwrap();
        if message["id"] == 1 {
            return Ok(message);
        }
    }
}

fn cli(session: &mut Session, line: &str) -> Value {
    call(session, "cli", &json!({ "line": line })).unwrap()
}

#[test]
fn an_operator_changes_the_router_and_a_watcher_only_looks() {
    let guarded = Guarded::start("roles");
    let mut operator = guarded.connect(Some(&guarded.clients.give(OPERATOR, |_| {})));
    assert!(cli(&mut operator, "set interface state e0 up")["error"].is_null());
    let mut watcher = guarded.connect(Some(&guarded.clients.give(WATCHER, |_| {})));
    assert!(cli(&mut watcher, "show interface")["error"].is_null());
    for line in ["set interface state e0 down", "show running-config secrets"] {
        let refused = cli(&mut watcher, line);
        assert_eq!(refused["error"]["code"], -32003, "{line}: {refused}");
    }
    let script = json!({ "text": "show interface\nset interface state e0 down\n" });
    let refused = call(&mut watcher, "script", &script).unwrap();
    assert!(refused["error"]["message"].as_str().unwrap().contains("read-only"), "{refused}");
    assert!(cli(&mut operator, "set interface state e0 down")["error"].is_null());
}

#[test]
fn a_certificate_of_somebody_else_or_of_another_time_or_none_is_refused() {
    let guarded = Guarded::start("refused");
    let strangers = Authority::new();
    let expired = guarded.clients.give(OPERATOR, |params| {
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(2021, 1, 1);
    });
    let early = guarded.clients.give(OPERATOR, |params| {
        params.not_before = date_time_ymd(2120, 1, 1);
    });
    let strange = strangers.give(OPERATOR, |_| {});
    for own in [Some(&expired), Some(&early), Some(&strange), None] {
        let refused = call(&mut guarded.connect(own), "generation", &json!({}));
        assert!(refused.is_err(), "{refused:?}");
    }
    let good = guarded.clients.give(OPERATOR, |_| {});
    assert!(call(&mut guarded.connect(Some(&good)), "commands", &json!({})).is_ok());
}

#[test]
fn a_revoked_certificate_is_refused() {
    let guarded = Guarded::start_with("revoked", Limits::default(), |door| {
        door.client_crl = Some(door.key.with_file_name("crl"));
    });
    let numbered = |number: u64| {
        guarded.clients.give(OPERATOR, |params| {
            params.serial_number = Some(SerialNumber::from(number));
        })
    };
    let (revoked, good) = (numbered(7), numbered(8));
    let get_in =
        |own: &Owned| call(&mut guarded.connect(Some(own)), "commands", &json!({})).is_ok();
    assert!(!get_in(&good), "without the list nobody gets in");
    write(&guarded.folder.join("crl"), &guarded.clients.revoke(7));
    let deadline = Instant::now() + Duration::from_secs(120);
    while !get_in(&good) {
        assert!(Instant::now() < deadline, "the list is not read");
        std::thread::sleep(Duration::from_millis(100));
    }
    assert!(!get_in(&revoked));
}

#[test]
fn long_answers_and_long_requests_pass_whole() {
    let guarded = Guarded::start("long");
    let mut session = guarded.connect(Some(&guarded.clients.give(OPERATOR, |_| {})));
    let whole = call(&mut session, "commands", &json!({})).unwrap();
    let text = "show interface\n".repeat(20_000);
    let done = call(&mut session, "script", &json!({ "text": text })).unwrap();
    assert!(done["error"].is_null(), "{}", done["error"]);
    assert_eq!(call(&mut session, "commands", &json!({})).unwrap(), whole);
}

#[test]
fn strangers_who_never_finish_keep_nobody_out() {
    let limits = Limits { clients_max: 8, clients_per_user_max: 4, ..Limits::default() };
    let guarded = Guarded::start_with("strangers", limits, |_| {});
    let own = guarded.clients.give(OPERATOR, |_| {});
    let mut session = guarded.connect(Some(&own));
    assert!(call(&mut session, "commands", &json!({})).is_ok());
    let mut strangers = Vec::new();
    for round in 0..40_u8 {
        let mut stranger = guarded.socket();
        let said: &[u8] = match round % 4 {
            0 => b"",
            1 => b"GET / HTTP/1.1\r\n\r\n",
            2 => &[0x16, 0x03, 0x01, 0x40, 0x00, 1, 0],
            _ => &[0xff; 4096],
        };
        let _ = stranger.write_all(said);
        strangers.push(stranger);
    }
    assert!(call(&mut session, "commands", &json!({})).is_ok(), "who was there stays");
    assert!(call(&mut guarded.connect(Some(&own)), "commands", &json!({})).is_ok());
}

#[test]
fn a_client_over_tls_names_no_file_of_this_machine() {
    let guarded = Guarded::start("files");
    let mut session = guarded.connect(Some(&guarded.clients.give(OPERATOR, |_| {})));
    let secret = guarded.folder.join("commands");
    write(&secret, "show interface\n");
    for name in [secret.to_str().unwrap(), "/etc/passwd", "../../etc/passwd"] {
        let refused = cli(&mut session, &format!("exec {name}"));
        assert!(!refused["error"].is_null(), "{name}: {refused}");
        let text = refused.to_string();
        assert!(!text.contains("root:"), "{text}");
    }
}
