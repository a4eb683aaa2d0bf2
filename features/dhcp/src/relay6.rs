//! The IPv6 relay agent's decisions about one message (RFC 8415 §19): bytes in, bytes out.

use std::net::Ipv6Addr;

use quiver_wire::MacAddress;
use quiver_wire::dhcp6::{
    ETHERNET, HOP_COUNT_LIMIT, RelayHeader, RelayMessage, Writer, message, option,
};
use quiver_wire::ip6::address::{is_link_local, is_unicast};

use crate::option82::{TEXT_BYTES_MAX, Vss};
use crate::reasons::RelayReason;

/// Bytes that a relay agent adds at most, beside the interface's identifier.
const ADDED_BYTES_MAX: usize = 34 + 5 * 4 + 80 + REMOTE_ID_BYTES_MAX + LINK_LAYER_BYTES;
/// Bytes of the remote identifier with its enterprise number (RFC 4649 §3).
const REMOTE_ID_BYTES_MAX: usize = 4 + TEXT_BYTES_MAX;
/// Bytes of the hardware type and the MAC address (RFC 6939 §4).
const LINK_LAYER_BYTES: usize = 2 + 6;

/// What servers are told of the clients of an interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interface6Options {
    /// What is at the remote end, and whose name for it that is: an enterprise number (RFC 4649).
    pub remote_id: Option<(u32, String)>,
    /// The client's MAC address (RFC 6939).
    pub link_layer_address: bool,
}

impl Interface6Options {
    /// The data of the remote identifier's option.
    pub fn remote_id_bytes(&self) -> Option<Vec<u8>> {
        let (enterprise, name) = self.remote_id.as_ref()?;
        Some([&enterprise.to_be_bytes()[..], name.as_bytes()].concat())
    }
}

/// What of the receiving interface matters for a client's message.
#[derive(Clone, Copy, Debug, Default)]
pub struct FromClient<'a> {
    /// An address of its link that servers know it by; none when it has only a link-local one.
    pub link: Option<Ipv6Addr>,
    /// Its identifier.
    pub interface_id: &'a [u8],
    /// The client's VPN.
    pub vss: Option<&'a Vss>,
    /// The data of the remote identifier's option.
    pub remote_id: Option<&'a [u8]>,
    /// The MAC address that the message came from, where servers are told it.
    pub mac: Option<MacAddress>,
}

/// A message of `peer`, a client or another relay agent, as a server gets it.
///
/// # Errors
/// The message is not relayed, for the reason that is returned.
pub fn to_server(
    bytes: &[u8],
    peer: Ipv6Addr,
    from: FromClient<'_>,
) -> Result<Vec<u8>, RelayReason> {
    if !is_unicast(peer) {
        return Err(RelayReason::BadPeer);
    }
    let own_link = from.link.unwrap_or(Ipv6Addr::UNSPECIFIED);
    let (hop_count, link) = match *bytes.first().ok_or(RelayReason::Truncated)? {
        // RFC 8415 §19.1: these are a server's, RFC 7283 §4 lets all others pass.
        message::ADVERTISE | message::REPLY | message::RECONFIGURE | message::RELAY_REPLY => {
            return Err(RelayReason::WrongMessage);
        }
        message::RELAY_FORWARD => {
            let relayed = RelayMessage::parse(bytes)?;
            if relayed.header.hop_count >= HOP_COUNT_LIMIT {
                return Err(RelayReason::Hops);
            }
            // §19.1.2: a relay agent with an address beyond its link names the link itself.
            let link = if is_link_local(peer) { own_link } else { Ipv6Addr::UNSPECIFIED };
            (relayed.header.hop_count + 1, link)
        }
        _ => {
            quiver_wire::dhcp6::Message::parse(bytes)?;
            (0, own_link)
        }
    };
    let header = RelayHeader::new(message::RELAY_FORWARD, hop_count, link, peer);
    let mut out = vec![0; bytes.len() + from.interface_id.len() + ADDED_BYTES_MAX];
    let mut writer = Writer::relay(&mut out, &header).map_err(|_| RelayReason::TooLong)?;
    let vss = from.vss.map(Vss::bytes);
    // RFC 6939 §5: by the relay agent that the client speaks to.
    let mac = from.mac.filter(|_| bytes.first() != Some(&message::RELAY_FORWARD));
    let link_layer = mac.map(|mac| [&ETHERNET.to_be_bytes()[..], &mac.0].concat());
    let options = [
        Some((option::INTERFACE_ID, from.interface_id)),
        from.remote_id.map(|remote_id| (option::REMOTE_ID, remote_id)),
        vss.as_deref().map(|vss| (option::VSS, vss)),
        link_layer.as_deref().map(|address| (option::CLIENT_LINK_LAYER_ADDRESS, address)),
        Some((option::RELAY_MESSAGE, bytes)),
    ];
    for (code, data) in options.into_iter().flatten() {
        writer.put(code, data).map_err(|_| RelayReason::TooLong)?;
    }
    let length = writer.finish();
    out.truncate(length);
    Ok(out)
}

/// A server's message to this relay agent.
#[derive(Clone, Copy, Debug)]
pub struct FromServer<'a> {
    /// The interface that it names, by its identifier.
    pub interface_id: Option<&'a [u8]>,
    /// An address of the link that it names.
    pub link: Ipv6Addr,
    /// Who gets what it carries.
    pub peer: Ipv6Addr,
    /// What it carries.
    pub message: &'a [u8],
    /// It is for another relay agent, not for a client.
    pub is_for_relay: bool,
}

/// Reads a server's message.
///
/// # Errors
/// The message is not relayed, for the reason that is returned.
pub fn from_server(bytes: &[u8]) -> Result<FromServer<'_>, RelayReason> {
    if bytes.first() != Some(&message::RELAY_REPLY) {
        return Err(RelayReason::WrongMessage);
    }
    let relayed = RelayMessage::parse(bytes)?;
    let peer = relayed.header.peer_address();
    if !is_unicast(peer) {
        return Err(RelayReason::BadPeer);
    }
    Ok(FromServer {
        interface_id: relayed.options.find(option::INTERFACE_ID),
        link: relayed.header.link_address(),
        peer,
        message: relayed.message,
        is_for_relay: relayed.message.first() == Some(&message::RELAY_REPLY),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SOLICIT: [u8; 4] = [1, 0, 0, 7];

    fn peer() -> Ipv6Addr {
        "fe80::9".parse().unwrap()
    }

    fn own() -> Ipv6Addr {
        "2001:db8::1".parse().unwrap()
    }

    fn relay(bytes: &[u8], peer: Ipv6Addr) -> Result<Vec<u8>, RelayReason> {
        let from = FromClient { link: Some(own()), interface_id: b"e0", ..FromClient::default() };
        to_server(bytes, peer, from)
    }

    #[test]
    fn a_clients_message_is_wrapped_with_its_link_and_interface() {
        let out = relay(&SOLICIT, peer()).unwrap();
        let read = RelayMessage::parse(&out).unwrap();
        assert_eq!((read.header.message_type, read.header.hop_count), (12, 0));
        assert_eq!((read.header.link_address(), read.header.peer_address()), (own(), peer()));
        assert_eq!(read.options.find(option::INTERFACE_ID), Some(&b"e0"[..]));
        assert_eq!(read.message, SOLICIT);
    }

    #[test]
    fn a_server_is_told_the_remote_end_and_the_mac_address_of_a_client() {
        let text = "x".repeat(TEXT_BYTES_MAX);
        let options = Interface6Options { remote_id: Some((9, text)), link_layer_address: true };
        let remote_id = options.remote_id_bytes().unwrap();
        let from = FromClient {
            remote_id: Some(&remote_id),
            mac: Some(MacAddress([2, 0, 0, 0, 0, 9])),
            ..FromClient::default()
        };
        let out = to_server(&SOLICIT, peer(), from).unwrap();
        let read = RelayMessage::parse(&out).unwrap();
        assert_eq!(read.options.find(option::REMOTE_ID), Some(&remote_id[..]));
        assert_eq!(remote_id[..5], [0, 0, 0, 9, b'x']);
        let mac = read.options.find(option::CLIENT_LINK_LAYER_ADDRESS);
        assert_eq!(mac, Some(&[0, 1, 2, 0, 0, 0, 0, 9][..]));
        let again = to_server(&out, peer(), from).unwrap();
        let read = RelayMessage::parse(&again).unwrap();
        assert_eq!(read.options.find(option::CLIENT_LINK_LAYER_ADDRESS), None, "a relay agent's");
        assert_eq!(read.options.find(option::REMOTE_ID), Some(&remote_id[..]));
    }

    #[test]
    fn a_relay_agents_message_is_wrapped_again_until_it_has_gone_too_far() {
        let far: Ipv6Addr = "2001:db8:7::1".parse().unwrap();
        let once = relay(&SOLICIT, peer()).unwrap();
        let twice = relay(&once, far).unwrap();
        let read = RelayMessage::parse(&twice).unwrap();
        assert_eq!(read.header.hop_count, 1);
        assert!(read.header.link_address().is_unspecified());
        assert_eq!(
            RelayMessage::parse(&relay(&once, peer()).unwrap()).unwrap().header.link_address(),
            own()
        );
        let mut deep = once;
        for _ in 0..8 {
            deep = relay(&deep, far).unwrap();
        }
        assert_eq!(relay(&deep, far), Err(RelayReason::Hops));
    }

    #[test]
    fn what_no_relay_agent_takes_is_refused() {
        for kind in [2, 7, 10, 13] {
            assert_eq!(relay(&[kind, 0, 0, 1], peer()), Err(RelayReason::WrongMessage));
        }
        assert_eq!(relay(&SOLICIT, Ipv6Addr::UNSPECIFIED), Err(RelayReason::BadPeer));
        assert_eq!(relay(&[], peer()), Err(RelayReason::Truncated));
        assert_eq!(relay(&[1, 0, 0], peer()), Err(RelayReason::Truncated));
        assert_eq!(relay(&[1, 0, 0, 1, 0], peer()), Err(RelayReason::Options));
        assert_eq!(relay(&[12; 34], peer()), Err(RelayReason::NoMessage));
        assert_eq!(from_server(&SOLICIT).map(|_| ()), Err(RelayReason::WrongMessage));
    }

    #[test]
    fn a_servers_message_says_interface_and_peer() {
        let mut bytes = relay(&[7, 0, 0, 7], peer()).err().map_or_else(Vec::new, |_| {
            let header = RelayHeader::new(message::RELAY_REPLY, 0, own(), peer());
            let mut out = vec![0; 100];
            let mut writer = Writer::relay(&mut out, &header).unwrap();
            writer.put(option::INTERFACE_ID, b"e0").unwrap();
            writer.put(option::RELAY_MESSAGE, &[7, 0, 0, 7]).unwrap();
            let length = writer.finish();
            out.truncate(length);
            out
        });
        let read = from_server(&bytes).unwrap();
        assert_eq!((read.interface_id, read.link, read.peer), (Some(&b"e0"[..]), own(), peer()));
        assert_eq!((read.message, read.is_for_relay), (&[7, 0, 0, 7][..], false));
        bytes[18] = 0xff;
        assert_eq!(from_server(&bytes).map(|_| ()), Err(RelayReason::BadPeer));
    }

    proptest! {
        #[test]
        fn no_message_panics_and_what_is_relayed_is_read(
            bytes in prop::collection::vec(any::<u8>(), 0..120), peer: u128
        ) {
            if let Ok(out) = relay(&bytes, peer.into()) {
                let read = RelayMessage::parse(&out).unwrap();
                prop_assert_eq!(read.message, &bytes[..]);
            }
            let _ = from_server(&bytes);
        }
    }
}
