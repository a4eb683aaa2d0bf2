//! The IPv4 relay agent's decisions about one message (RFC 1542 §4.1, RFC 3046 §2): bytes in,
//! bytes out.

use std::net::Ipv4Addr;

use quiver_wire::dhcp4::{Dhcp4Header, MESSAGE_BYTES_MIN, Message, OPTIONS_AT, Writer, option};
use quiver_wire::{Header, MacAddress};

use crate::option82::{Policy, Said, circuit_of};
use crate::reasons::RelayReason;

/// Relay agents that a message passes at most (RFC 1542 §4.1.1).
pub const HOPS_MAX: u8 = 16;
/// Bytes of a message that option 82 is added to, with it, at most: a packet of 1,500 bytes (RFC
/// 3046 §2.1).
pub const WITH_OPTION_BYTES_MAX: usize = 1500 - 20 - 8;

/// A message with some of its options left out and others behind the rest.
fn rewrite(
    message: &Message<'_>,
    header: &Dhcp4Header,
    keep: impl Fn(u8, &[u8]) -> bool,
    more: Option<&[u8]>,
) -> Option<Vec<u8>> {
    let area = message.area.unwrap_or_default();
    let more_len = more.map_or(0, |data| 2 + data.len());
    let mut out = vec![0; (OPTIONS_AT + area.len() + more_len + 1).max(MESSAGE_BYTES_MIN)];
    let mut writer = Writer::begin(&mut out, header).ok()?;
    for found in message.options().filter(|found| keep(found.code, found.data)) {
        writer.put(found.code, found.data).ok()?;
    }
    if let Some(data) = more {
        writer.put(option::RELAY_AGENT, data).ok()?;
    }
    let length = writer.finish().ok()?;
    out.truncate(length);
    Some(out)
}

/// The message as it is, with another fixed part.
fn with_header(bytes: &[u8], header: &Dhcp4Header) -> Option<Vec<u8>> {
    let mut out = bytes.to_vec();
    header.write(&mut out).ok()?;
    Some(out)
}

/// A message for a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Relayed {
    /// It.
    pub bytes: Vec<u8>,
    /// It would be too long with option 82, and goes without.
    pub without_option: bool,
}

/// What of the receiving interface matters for a client's message.
#[derive(Clone, Copy, Debug)]
pub struct FromClient<'a> {
    /// The relay agent's address that the message gets.
    pub giaddr: Ipv4Addr,
    /// What becomes of messages with option 82.
    pub policy: Policy,
    /// The option; none where it is switched off.
    pub said: Option<Said<'a>>,
}

/// Has a client's message come directly from it?
pub fn is_direct(header: &Dhcp4Header) -> bool {
    header.giaddr().is_unspecified()
}

/// A client's message as a server gets it. `is_ours`: is an address this router's own?
///
/// # Errors
/// The message is not relayed, for the reason that is returned.
pub fn to_server(
    bytes: &[u8],
    message: &Message<'_>,
    from: FromClient<'_>,
    is_ours: impl Fn(Ipv4Addr) -> bool,
) -> Result<Relayed, RelayReason> {
    let mut header = *message.header;
    if header.hops >= HOPS_MAX {
        return Err(RelayReason::Hops);
    }
    header.hops += 1;
    if !is_direct(&header) {
        // RFC 3046 §2.1: another relay agent's message is passed on, and its option 82 with it.
        if is_ours(header.giaddr()) {
            return Err(RelayReason::GiaddrOurs);
        }
        let bytes = with_header(bytes, &header).ok_or(RelayReason::Truncated)?;
        return Ok(Relayed { bytes, without_option: false });
    }
    header.set_giaddr(from.giaddr);
    let has_option = message.option(option::RELAY_AGENT).is_some();
    if has_option && from.policy == Policy::Drop {
        return Err(RelayReason::OptionUntrusted);
    }
    let is_kept = has_option && from.policy == Policy::Keep;
    let said = from.said.filter(|_| message.area.is_some() && !is_kept);
    let data = said.as_ref().and_then(Said::bytes);
    let Some(data) = data else {
        let bytes = with_header(bytes, &header).ok_or(RelayReason::Truncated)?;
        return Ok(Relayed { bytes, without_option: said.is_some() });
    };
    let is_replaced = from.policy == Policy::Replace;
    let keep = |code: u8, _: &[u8]| !(is_replaced && code == option::RELAY_AGENT);
    let with = rewrite(message, &header, keep, Some(&data)).ok_or(RelayReason::Truncated)?;
    if with.len() <= WITH_OPTION_BYTES_MAX {
        return Ok(Relayed { bytes: with, without_option: false });
    }
    let bytes = rewrite(message, &header, keep, None).ok_or(RelayReason::Truncated)?;
    Ok(Relayed { bytes, without_option: true })
}

/// The circuits that a reply names, in its options 82, the last one first: ours comes last.
pub fn circuits<'a>(message: &Message<'a>) -> Vec<&'a [u8]> {
    let options = message.options().filter(|found| found.code == option::RELAY_AGENT);
    let mut found: Vec<_> = options.filter_map(|found| circuit_of(found.data)).collect();
    found.reverse();
    found
}

/// Where a client gets its reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct To {
    /// The IPv4 destination.
    pub address: Ipv4Addr,
    /// The MAC address.
    pub mac: MacAddress,
}

/// Where a client gets a reply (RFC 1542 §4.1.2, RFC 2131 §4.1): at the address that it gets or
/// has, or by broadcast when it asks for that.
pub fn destination(header: &Dhcp4Header) -> To {
    let everybody = To { address: Ipv4Addr::BROADCAST, mac: MacAddress::BROADCAST };
    let mac = header.mac().filter(|mac| mac.is_unicast() && *mac != MacAddress::ZERO);
    let is_host = |address: &Ipv4Addr| quiver_wire::ip4::address::is_unicast(*address);
    let address = [header.yiaddr(), header.ciaddr()].into_iter().find(|a| !a.is_unspecified());
    match (mac, address.filter(is_host)) {
        (Some(mac), Some(address)) if !header.wants_broadcast() => To { address, mac },
        _ => everybody,
    }
}

/// A reply as its client gets it: without our option 82 (RFC 3046 §2.1), which names `circuit_id`.
///
/// # Errors
/// The reply cannot be written anew.
pub fn to_client(
    bytes: &[u8],
    message: &Message<'_>,
    circuit_id: &[u8],
) -> Result<Vec<u8>, RelayReason> {
    let is_ours =
        |code: u8, data: &[u8]| code == option::RELAY_AGENT && circuit_of(data) == Some(circuit_id);
    if !message.options().any(|found| is_ours(found.code, found.data)) {
        return Ok(bytes.to_vec());
    }
    let keep = |code: u8, data: &[u8]| !is_ours(code, data);
    rewrite(message, message.header, keep, None).ok_or(RelayReason::Truncated)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use quiver_wire::dhcp4::{BROADCAST_FLAG, message_type};

    use super::*;

    const MAC: MacAddress = MacAddress([2, 0, 0, 0, 0, 9]);
    const OWN: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);

    fn message(change: impl Fn(&mut Dhcp4Header), options: &[(u8, &[u8])]) -> Vec<u8> {
        let mut header = Dhcp4Header::request(MAC, 7);
        change(&mut header);
        let mut out = vec![0; 4096];
        let mut writer = Writer::begin(&mut out, &header).unwrap();
        writer.put(option::MESSAGE_TYPE, &[message_type::DISCOVER]).unwrap();
        options.iter().for_each(|(code, data)| writer.put(*code, data).unwrap());
        let length = writer.finish().unwrap();
        out.truncate(length);
        out
    }

    fn said() -> Said<'static> {
        let (remote_id, link, server_override, vss) = (None, None, None, None);
        Said { circuit_id: b"e0", remote_id, link, server_override, vss }
    }

    fn relay(bytes: &[u8], policy: Policy, said: Option<Said<'_>>) -> Result<Relayed, RelayReason> {
        let from = FromClient { giaddr: OWN, policy, said };
        to_server(bytes, &Message::parse(bytes).unwrap(), from, |address| address == OWN)
    }

    fn options(bytes: &[u8]) -> Vec<(u8, Vec<u8>)> {
        let message = Message::parse(bytes).unwrap();
        message.options().map(|found| (found.code, found.data.to_vec())).collect()
    }

    #[test]
    fn a_clients_message_gets_our_address_and_our_option() {
        let relayed = relay(&message(|_| (), &[]), Policy::Drop, Some(said())).unwrap();
        assert!(!relayed.without_option);
        let read = Message::parse(&relayed.bytes).unwrap();
        assert_eq!((read.header.hops, read.header.giaddr()), (1, OWN));
        assert_eq!(options(&relayed.bytes), [(53, vec![1]), (82, b"\x01\x02e0".to_vec())]);
        let plain = relay(&message(|_| (), &[]), Policy::Drop, None).unwrap();
        assert_eq!(options(&plain.bytes), [(53, vec![1])]);
    }

    #[test]
    fn an_option_82_of_the_client_is_met_as_the_policy_says() {
        let theirs = message(|_| (), &[(82, b"\x01\x01x")]);
        let done = |policy| relay(&theirs, policy, Some(said()));
        assert_eq!(done(Policy::Drop), Err(RelayReason::OptionUntrusted));
        let after = |policy| options(&done(policy).unwrap().bytes)[1..].to_vec();
        let (x, ours) = ((82, b"\x01\x01x".to_vec()), (82, b"\x01\x02e0".to_vec()));
        assert_eq!(after(Policy::Keep)[..], *std::slice::from_ref(&x));
        assert_eq!(after(Policy::Replace)[..], *std::slice::from_ref(&ours));
        assert_eq!(after(Policy::Append), [x, ours]);
    }

    #[test]
    fn another_relay_agents_message_is_passed_on_and_a_circle_ends() {
        let other = Ipv4Addr::new(198, 51, 100, 1);
        let theirs = message(|header| header.set_giaddr(other), &[(82, b"\x01\x01x")]);
        let relayed = relay(&theirs, Policy::Drop, Some(said())).unwrap();
        assert_eq!(options(&relayed.bytes), options(&theirs));
        let header = Dhcp4Header::overlay(&relayed.bytes).unwrap();
        assert_eq!((header.hops, header.giaddr()), (1, other));
        let refused = |change: fn(&mut Dhcp4Header)| {
            relay(&message(change, &[]), Policy::Drop, Some(said())).unwrap_err()
        };
        assert_eq!(refused(|header| header.set_giaddr(OWN)), RelayReason::GiaddrOurs);
        assert_eq!(refused(|header| header.hops = 16), RelayReason::Hops);
        assert!(relay(&message(|h| h.hops = 15, &[]), Policy::Drop, None).is_ok());
    }

    #[test]
    fn a_message_that_would_be_too_long_goes_without_the_option() {
        let long: Vec<(u8, &[u8])> = vec![(43, &[7; 250]); 4];
        let fits = message(|_| (), &long);
        assert!(!relay(&fits, Policy::Drop, Some(said())).unwrap().without_option);
        let mut long: Vec<(u8, &[u8])> = vec![(43, &[7; 244]); 4];
        long.push((43, &[7; 232]));
        let full = message(|_| (), &long);
        assert_eq!(full.len(), WITH_OPTION_BYTES_MAX - 10);
        let mut said = said();
        said.remote_id = Some(b"a remote end with a name");
        let relayed = relay(&full, Policy::Drop, Some(said)).unwrap();
        assert!(relayed.without_option);
        assert_eq!(options(&relayed.bytes), options(&full));
    }

    #[test]
    fn a_bootp_message_is_relayed_without_options() {
        let bytes = &message(|_| (), &[])[..236];
        let relayed = relay(bytes, Policy::Drop, Some(said())).unwrap();
        assert_eq!(relayed.bytes.len(), 236);
        assert_eq!(Dhcp4Header::overlay(&relayed.bytes).unwrap().giaddr(), OWN);
    }

    #[test]
    fn our_option_is_taken_out_of_a_reply_and_no_other() {
        let reply = message(|header| header.op = 2, &[(82, b"\x01\x01x"), (82, b"\x01\x02e0")]);
        let read = Message::parse(&reply).unwrap();
        assert_eq!(circuits(&read), [&b"e0"[..], b"x"]);
        let out = to_client(&reply, &read, b"e0").unwrap();
        assert_eq!(options(&out)[1..], [(82, b"\x01\x01x".to_vec())]);
        assert_eq!(to_client(&reply, &read, b"e1").unwrap(), reply);
    }

    #[test]
    fn replies_go_where_the_client_hears_them() {
        let to = |change: fn(&mut Dhcp4Header)| {
            let mut header = Dhcp4Header::request(MAC, 7);
            change(&mut header);
            destination(&header)
        };
        let given = Ipv4Addr::new(192, 0, 2, 9);
        let everybody = To { address: Ipv4Addr::BROADCAST, mac: MacAddress::BROADCAST };
        let it = To { address: given, mac: MAC };
        assert_eq!(to(|h| h.set_yiaddr(Ipv4Addr::new(192, 0, 2, 9))), it);
        assert_eq!(to(|h| h.set_ciaddr(Ipv4Addr::new(192, 0, 2, 9))), it);
        assert_eq!(to(|_| ()), everybody);
        assert_eq!(to(|h| h.set_yiaddr(Ipv4Addr::new(224, 0, 0, 9))), everybody);
        assert_eq!(
            to(|h| {
                h.set_yiaddr(Ipv4Addr::new(192, 0, 2, 9));
                h.set_flags(BROADCAST_FLAG);
            }),
            everybody
        );
        assert_eq!(
            to(|h| {
                h.set_yiaddr(Ipv4Addr::new(192, 0, 2, 9));
                h.hardware_type = 6;
            }),
            everybody
        );
    }

    proptest! {
        #[test]
        fn no_message_panics_and_what_is_relayed_is_read(
            area in prop::collection::vec(any::<u8>(), 0..80), hops: u8, giaddr: u32
        ) {
            let mut header = Dhcp4Header::request(MAC, 7);
            header.hops = hops;
            header.set_giaddr(giaddr.into());
            let mut bytes = vec![0; 236];
            header.write(&mut bytes).unwrap();
            bytes.extend(quiver_wire::dhcp4::COOKIE);
            bytes.extend(area);
            let Ok(read) = Message::parse(&bytes) else { return Ok(()) };
            for (_, policy) in Policy::WORDS {
                let from = FromClient { giaddr: OWN, policy, said: Some(said()) };
                if let Ok(relayed) = to_server(&bytes, &read, from, |address| address == OWN) {
                    let read = Message::parse(&relayed.bytes);
                    prop_assert!(read.is_ok());
                    let _ = to_client(&relayed.bytes, &read.unwrap(), b"e0");
                }
            }
            let _ = (circuits(&read), destination(&header));
        }
    }
}
