//! The section `api` of the start-up file: doors of the API beside its socket.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;

use crate::args::Args;
use crate::error::Refusal;
use crate::server::TlsDoor;
use crate::startup::{Section, Startup};

/// What the section says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Api {
    /// An address of the loopback to listen on.
    pub tcp: Option<SocketAddr>,
    /// What clients over TCP must say stands here.
    pub token_file: Option<PathBuf>,
    /// Where clients with certificates come to.
    pub tls: Option<TlsDoor>,
}

/// Entries that mean nothing without `tls-port`.
const OF_TLS: [&str; 6] =
    ["tls-address", "certificate", "key", "client-ca", "client-crl", "operators"];

pub(crate) fn section() -> Section {
    Section::new("api")
        .help("Doors of the API beside the socket in runtime-dir")
        .entry(
            "tcp-port <:1-65535>",
            "port of 127.0.0.1 for JSON-RPC; clients say the token of token-file first",
        )
        .entry("token-file <:path>", "file of the token, made when it is not there")
        .entry("tls-port <:1-65535>", "port for JSON-RPC over TLS, with certificates of clients")
        .entry("tls-address <:ip>", "address for it; all addresses when not given")
        .entry("certificate <:path>", "the router's certificate and those above it, in PEM")
        .entry("key <:path>", "its private key, in PEM, which not everybody may read")
        .entry("client-ca <:path>", "whose certificates clients must have, in PEM")
        .entry("client-crl <:path>", "certificates of clients that are revoked, in PEM")
        .entry(
            "operators <:word>",
            "names of operators in their certificates (DNS or URI), with commas between; other \
             clients may look at the router and not change it",
        )
}

impl Startup<'_> {
    /// The section `api`.
    ///
    /// # Errors
    /// A value has another form, or something is missing.
    pub fn api(&self) -> Result<Api, Refusal> {
        let Some(args) = self.section("api") else { return Ok(Api::default()) };
        api(&args).map_err(|refusal| self.refuse_in("api", refusal))
    }
}

fn api(args: &Args<'_>) -> Result<Api, Refusal> {
    let path = |name: &str| Ok::<_, Refusal>(args.optional::<String>(name)?.map(PathBuf::from));
    let tcp = args.optional::<u16>("tcp-port")?;
    let token_file = path("token-file")?;
    if token_file.is_some() && tcp.is_none() {
        return Err(args.refuse("token-file", "there is no tcp-port").remedy("give both or none"));
    }
    let tcp = tcp.map(|port| SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port));
    let Some(port) = args.optional::<u16>("tls-port")? else {
        return match OF_TLS.into_iter().find(|name| args.has(name)) {
            Some(name) => {
                Err(args.refuse(name, "there is no tls-port").remedy("give tls-port, too"))
            }
            None => Ok(Api { tcp, token_file, tls: None }),
        };
    };
    let needed = |name: &'static str| {
        path(name)?.ok_or_else(|| {
            args.refuse("tls-port", format!("{name} is missing"))
                .remedy("TLS needs certificate, key and client-ca")
        })
    };
    let operators = args.optional::<&str>("operators")?.unwrap_or_default().split(',');
    let address = args.or("tls-address", IpAddr::V6(Ipv6Addr::UNSPECIFIED))?;
    let tls = TlsDoor {
        address: SocketAddr::new(address, port),
        certificate: needed("certificate")?,
        key: needed("key")?,
        client_ca: needed("client-ca")?,
        client_crl: path("client-crl")?,
        operators: operators.filter(|name| !name.is_empty()).map(str::to_owned).collect(),
    };
    Ok(Api { tcp, token_file, tls: Some(tls) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::startup::{StartupFile, StartupSchema};

    fn parsed(text: &str) -> Result<Api, String> {
        let file = StartupFile::from_text("test", text);
        let schema = StartupSchema::default();
        let startup = schema.parse(&file).map_err(|refusal| refusal.to_string())?;
        startup.api().map_err(|refusal| refusal.to_string())
    }

    #[test]
    fn doors_are_opened_where_they_are_named() {
        assert_eq!(parsed("unix { }").unwrap(), Api::default());
        let tcp = parsed("api { tcp-port 5002 token-file /t }").unwrap();
        assert_eq!(tcp.tcp, Some(([127, 0, 0, 1], 5002).into()));
        let files = "certificate /c key /k client-ca /ca";
        let tls = parsed(&format!("api {{ tls-port 5003 {files} operators a.example,urn:b }}"));
        let tls = tls.unwrap().tls.unwrap();
        assert_eq!(tls.address, "[::]:5003".parse().unwrap());
        assert_eq!(tls.operators, ["a.example", "urn:b"]);
        let one = format!("api {{ tls-port 5003 tls-address 10.0.0.1 {files} }}");
        let one = parsed(&one).unwrap().tls.unwrap();
        assert_eq!((one.address, one.operators.len()), ("10.0.0.1:5003".parse().unwrap(), 0));
    }

    #[test]
    fn what_is_missing_is_said() {
        for (text, said) in [
            ("api { tls-port 5003 certificate /c key /k }", "client-ca is missing"),
            ("api { certificate /c }", "there is no tls-port"),
            ("api { token-file /t }", "there is no tcp-port"),
            ("api { tls-port 0 }", "from 1 to 65535"),
        ] {
            let refused = parsed(text).unwrap_err();
            assert!(refused.contains(said), "{text}: {refused}");
        }
    }
}
