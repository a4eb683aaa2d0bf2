//! Option 82: what the relay agent says of a client's circuit (RFC 3046 and its sub-options).

use std::net::Ipv4Addr;

use quiver_wire::dhcp4::{OPTION_BYTES_MAX, Options, Writer, sub_option};

/// Bytes of a circuit's or remote end's identifier, and of a VPN's name, at most: all of them fit
/// into one option.
pub const TEXT_BYTES_MAX: usize = 63;
/// The flag of a message that was unicast (RFC 5010 §3).
const UNICAST: u8 = 0x80;

/// What becomes of a client's message that has option 82 already (RFC 3046 §2.1.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// It is dropped: clients are not trusted.
    #[default]
    Drop,
    /// It is relayed as it is.
    Keep,
    /// The client's option goes, ours comes.
    Replace,
    /// Ours comes behind the client's.
    Append,
}

impl Policy {
    /// All, as commands name them.
    pub const WORDS: [(&'static str, Policy); 4] = [
        ("drop", Policy::Drop),
        ("keep", Policy::Keep),
        ("replace", Policy::Replace),
        ("append", Policy::Append),
    ];

    /// As commands name it.
    pub fn word(self) -> &'static str {
        Policy::WORDS.iter().find(|(_, policy)| *policy == self).map_or("", |(word, _)| word)
    }
}

/// What was said of an interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InterfaceOptions {
    /// No option 82 there.
    pub disabled: bool,
    /// The circuit's identifier, when it is not the interface's name.
    pub circuit_id: Option<String>,
    /// The remote end's.
    pub remote_id: Option<String>,
    /// Clients are to renew their leases through this router (RFC 5107).
    pub server_override: bool,
    /// What becomes of messages that have option 82 already.
    pub policy: Policy,
}

/// Which VPN clients of a table are in (RFC 2685, RFC 6607).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Vss {
    /// By name.
    Name(String),
    /// By the number of an organization, 24 bits, and one of its own.
    Id {
        /// The organization.
        oui: u32,
        /// The VPN.
        index: u32,
    },
    /// None: the global one.
    Global,
}

impl Vss {
    /// The data of the sub-option, or of the option of DHCPv6 (RFC 6607 §3.1).
    pub fn bytes(&self) -> Vec<u8> {
        match self {
            Vss::Name(name) => [&[0], name.as_bytes()].concat(),
            Vss::Id { oui, index } => {
                [&[1], &oui.to_be_bytes()[1..], &index.to_be_bytes()[..]].concat()
            }
            Vss::Global => vec![255],
        }
    }
}

/// What the option says of one message.
#[derive(Clone, Copy, Debug)]
pub struct Said<'a> {
    /// The circuit.
    pub circuit_id: &'a [u8],
    /// What lies at its remote end.
    pub remote_id: Option<&'a [u8]>,
    /// The client's subnet, where `giaddr` does not say it.
    pub link: Option<Ipv4Addr>,
    /// The address that the server is to call itself, and whether the message was unicast.
    pub server_override: Option<(Ipv4Addr, bool)>,
    /// The client's VPN.
    pub vss: Option<&'a Vss>,
}

impl Said<'_> {
    /// The data of the option; `None` when it is too long.
    pub fn bytes(&self) -> Option<Vec<u8>> {
        let mut out = [0; OPTION_BYTES_MAX];
        let mut writer = Writer::bare(&mut out);
        writer.put(sub_option::CIRCUIT_ID, self.circuit_id).ok()?;
        if let Some(remote_id) = self.remote_id {
            writer.put(sub_option::REMOTE_ID, remote_id).ok()?;
        }
        if let Some(link) = self.link {
            writer.put(sub_option::LINK_SELECTION, &link.octets()).ok()?;
        }
        if let Some((address, is_unicast)) = self.server_override {
            writer.put(sub_option::FLAGS, &[if is_unicast { UNICAST } else { 0 }]).ok()?;
            writer.put(sub_option::SERVER_OVERRIDE, &address.octets()).ok()?;
        }
        if let Some(vss) = self.vss {
            writer.put(sub_option::VSS, &vss.bytes()).ok()?;
            writer.put(sub_option::VSS_CONTROL, &[]).ok()?;
        }
        let length = writer.end_bare();
        Some(out[..length].to_vec())
    }
}

/// The circuit that an option names.
pub fn circuit_of(data: &[u8]) -> Option<&[u8]> {
    let found = Options::sub_options(data).flatten();
    found.into_iter().find(|option| option.code == sub_option::CIRCUIT_ID).map(|found| found.data)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sub_options_are_those_of_the_rfcs() {
        let said = Said {
            circuit_id: b"e0",
            remote_id: Some(b"r"),
            link: Some(Ipv4Addr::new(192, 0, 2, 1)),
            server_override: Some((Ipv4Addr::new(192, 0, 2, 1), true)),
            vss: Some(&Vss::Id { oui: 0x0102_0304 & 0xff_ffff, index: 9 }),
        };
        let bytes = said.bytes().unwrap();
        let expected: &[u8] = &[
            1, 2, b'e', b'0', 2, 1, b'r', 5, 4, 192, 0, 2, 1, 10, 1, 0x80, 11, 4, 192, 0, 2, 1,
            151, 8, 1, 2, 3, 4, 0, 0, 0, 9, 152, 0,
        ];
        assert_eq!(bytes, expected);
        assert_eq!(circuit_of(&bytes), Some(&b"e0"[..]));
        assert_eq!(Vss::Name("red".into()).bytes(), b"\0red");
        assert_eq!(Vss::Global.bytes(), [255]);
    }

    #[test]
    fn the_longest_texts_fit_into_one_option() {
        let long = "x".repeat(TEXT_BYTES_MAX);
        let said = Said {
            circuit_id: long.as_bytes(),
            remote_id: Some(long.as_bytes()),
            link: Some(Ipv4Addr::LOCALHOST),
            server_override: Some((Ipv4Addr::LOCALHOST, false)),
            vss: Some(&Vss::Name(long.clone())),
        };
        assert!(said.bytes().is_some());
    }
}
