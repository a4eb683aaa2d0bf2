//! Translation of a packet by its session, which the packet refreshes. TCP and UDP without options,
//! extension headers and TCP state changes take the fast path; all other packets take the general
//! path. Both make the same of a packet that the fast path takes.

use quiver_core::Packet;
use quiver_translation::rewrite::{clamp_mss, tcp_flags};
use quiver_translation::tcp::{Direction, flag};
use quiver_translation::versions::address::Prefix;
use quiver_translation::versions::fast::{Fast4, Fast6};
use quiver_translation::versions::read::{Read4, Read6};
use quiver_translation::versions::to6::Done;
use quiver_translation::versions::{Refused, to4, to6};

use crate::session::Session;

/// Second in which a packet comes, and the greatest segment size that a SYN may name (0: any).
type NowAndMss = (u32, u16);

/// Make a packet of IPv6 one of IPv4. False, and nothing has changed, for those of the general
/// path: also segments of TCP that its state may change by.
#[inline(always)]
#[must_use]
pub(crate) fn to4_fast(
    packet: &mut Packet,
    session: Session<'_>,
    identification: u16,
    now_s: u32,
) -> bool {
    let Some(read) = Fast6::of(packet) else { return false };
    if read.tcp_flags(packet).is_some_and(|flags| !session.tcp().stays(flags)) {
        return false;
    }
    let delta = session.delta(Direction::InToOut);
    let is_done = read.to4_ends(packet, &session.ends4(), delta, identification);
    if is_done {
        session.refresh(now_s);
    }
    is_done
}

/// Make a packet of IPv6 one of IPv4.
///
/// # Errors
/// Its kind has no counterpart; nothing has changed.
pub(crate) fn to4(
    packet: &mut Packet,
    read: &Read6,
    session: Session<'_>,
    identification: u16,
    (now_s, mss): NowAndMss,
) -> Result<(), Refused> {
    let delta = session.delta(Direction::InToOut);
    to4::packet(packet, read, &session.ends4(), delta, identification)?;
    session.refresh(now_s);
    if let Some(flags) = tcp_flags(packet)
        && !session.tcp().stays(flags)
    {
        session.track(Direction::InToOut, flags);
        clamp(packet, flags, mss);
    }
    Ok(())
}

/// Make a packet of IPv4 one of IPv6, whose source stands behind `prefix`. False, and nothing has
/// changed, for those of the general path: also packets that are to be cut, and segments of TCP
/// that its state may change by.
#[inline(always)]
#[must_use]
pub(crate) fn to6_fast(
    packet: &mut Packet,
    (session, prefix): (Session<'_>, Prefix),
    mtu_bytes: u16,
    now_s: u32,
) -> bool {
    let Some(read) = Fast4::of(packet).filter(|read| read.fits6(mtu_bytes)) else { return false };
    if read.tcp_flags(packet).is_some_and(|flags| !session.tcp().stays(flags)) {
        return false;
    }
    let delta = session.delta(Direction::OutToIn);
    let is_done = read.to6_ends(packet, &session.ends6(prefix), delta);
    if is_done {
        session.refresh(now_s);
    }
    is_done
}

/// Make a packet of IPv4 one of IPv6, whose source stands behind `prefix`.
///
/// # Errors
/// Its kind has no counterpart, or there is no room in front of it; but for the segment size of a
/// SYN nothing has changed.
pub(crate) fn to6(
    packet: &mut Packet,
    read: &Read4,
    (session, prefix): (Session<'_>, Prefix),
    mtu_bytes: u16,
    (now_s, mss): NowAndMss,
) -> Result<Done, Refused> {
    let flags = tcp_flags(packet);
    if let Some(flags) = flags {
        clamp(packet, flags, mss);
    }
    let delta = session.delta(Direction::OutToIn);
    let done = to6::packet(packet, read, &session.ends6(prefix), delta, mtu_bytes)?;
    session.refresh(now_s);
    if let Some(flags) = flags
        && !session.tcp().stays(flags)
    {
        session.track(Direction::OutToIn, flags);
    }
    Ok(done)
}

/// Lower the segment size that a SYN names.
fn clamp(packet: &mut Packet, flags: u8, mss: u16) {
    if flags & flag::SYN != 0 && mss != 0 {
        clamp_mss(packet, mss);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use proptest::prelude::*;
    use proptest::sample::{Index, select};
    use quiver_bindings::Flags;
    use quiver_core::memory::buffer::BufferPool;
    use quiver_core::memory::mapping::PageSize;
    use quiver_translation::flow::End;
    use quiver_translation::versions::ends::Ports;
    use quiver_translation::versions::read::{read4, read6};
    use quiver_wire::IpProtocol;

    use super::*;
    use crate::session::{Inside, NewSession, WORDS};

    const NOW_S: u32 = 9;
    const TCP: u8 = 6;
    const IDENTIFICATION: u16 = 0x1234;
    /// The headers in which bytes are changed, and bytes that are cut off at most.
    const EDITED_BYTES: usize = 60;
    const SYN: u8 = 2;
    const ACK: u8 = 16;

    /// What a packet and its session have become: whether it is done, bytes, the length of the
    /// header of layer 2, whether it is carried, the words.
    type Became = (bool, Vec<u8>, u8, bool, [u64; WORDS]);

    fn became(
        bytes: &[u8],
        words: [u64; WORDS],
        work: impl FnOnce(&mut Packet, Session<'_>) -> bool,
    ) -> Became {
        let pool = BufferPool::new(128, 2048, PageSize::Small).expect("pool");
        let mut cache = pool.cache();
        let mut packet = cache.packet().expect("a buffer");
        assert!(packet.append(bytes, &mut cache));
        packet.l2_bytes = 14;
        let words = words.map(AtomicU64::new);
        let is_done = work(&mut packet, Session(&words));
        let (bytes, l2_bytes) = (packet.bytes().to_vec(), packet.l2_bytes);
        let words = words.map(|word| word.load(Ordering::Relaxed));
        let became = (is_done, bytes, l2_bytes, packet.take_carried(), words);
        cache.free(packet);
        became
    }

    /// A session of TCP in any state, or of UDP.
    fn sessions() -> impl Strategy<Value = NewSession> {
        let ends = (any::<u128>(), any::<u32>(), any::<[u16; 2]>(), any::<(u32, u16)>());
        (ends, any::<bool>(), NOW_S - 1..=NOW_S).prop_map(|(ends, is_tcp, now_s)| {
            let (host, remote, [source, destination], (address, port)) = ends;
            NewSession {
                inside: Inside {
                    host,
                    remote,
                    ports: Ports { source, destination },
                    protocol: if is_tcp { IpProtocol::TCP } else { IpProtocol::UDP },
                    table: 3,
                    prefix: 1,
                },
                prefix: Prefix::WELL_KNOWN,
                external: End { address, port },
                outside_table: 4,
                binding: 5,
                flags: Flags::default(),
                now_s,
                first: (Direction::InToOut, SYN),
            }
        })
    }

    /// Segments that both ends have sent behind the SYN that made a session.
    fn segments() -> impl Strategy<Value = Vec<(bool, u8)>> {
        let flags = prop_oneof![2 => Just(SYN | ACK), 4 => Just(ACK), 1 => any::<u8>()];
        prop::collection::vec((any::<bool>(), flags), 0..5)
    }

    fn words_of(new: &NewSession, segments: &[(bool, u8)]) -> [u64; WORDS] {
        let words = new.words().map(AtomicU64::new);
        if new.inside.protocol == IpProtocol::TCP {
            for (from_inside, flags) in segments {
                let (inside, outside) = (Direction::InToOut, Direction::OutToIn);
                Session(&words).track(if *from_inside { inside } else { outside }, *flags);
            }
        }
        words.map(|word| word.load(Ordering::Relaxed))
    }

    /// The upper layer of a packet: ports, then the rest of the header and data.
    fn upper(protocol: u8, ports: Ports, flags: u8, checksum: u16, rest: &[u8]) -> Vec<u8> {
        let mut upper = [ports.source.to_be_bytes(), ports.destination.to_be_bytes()].concat();
        upper.extend(rest);
        let at = if protocol == TCP { 16 } else { 6 };
        if protocol == TCP {
            (upper[12], upper[13]) = (0x50, flags);
        }
        upper[at..at + 2].copy_from_slice(&checksum.to_be_bytes());
        upper
    }

    /// A header of IPv6 or of IPv4, and what is behind it, with bytes that are set otherwise.
    fn packet6(new: &NewSession, upper: &[u8]) -> Vec<u8> {
        let length = (upper.len() as u16).to_be_bytes();
        let (protocol, to) = (new.inside.protocol.0, new.prefix.embed(new.inside.remote));
        let mut bytes = vec![0x62, 0xe1, 0x23, 0x45, length[0], length[1], protocol, 9];
        [new.inside.host, to].iter().for_each(|end| bytes.extend(end.to_be_bytes()));
        bytes.extend(upper);
        bytes
    }

    fn packet4(new: &NewSession, upper: &[u8], dont_fragment: bool) -> Vec<u8> {
        let (total, protocol) = ((20 + upper.len() as u16).to_be_bytes(), new.inside.protocol.0);
        let flags = u8::from(dont_fragment) << 6;
        let mut bytes = vec![0x45, 0x2e, total[0], total[1], 9, 9, flags, 0, 9, protocol, 7, 7];
        let ends = [new.inside.remote, new.external.address];
        ends.iter().for_each(|end| bytes.extend(end.to_be_bytes()));
        bytes.extend(upper);
        bytes
    }

    fn edited(mut bytes: Vec<u8>, edits: &[(Index, u8)]) -> Vec<u8> {
        for (place, value) in edits {
            let reach = bytes.len().min(EDITED_BYTES);
            bytes[place.index(reach)] = *value;
        }
        bytes
    }

    fn edits() -> impl Strategy<Value = Vec<(Index, u8)>> {
        prop::collection::vec((any::<Index>(), any::<u8>()), 0..3)
    }

    fn check(
        before: (&[u8], [u64; WORDS]),
        fast: &Became,
        general: &Became,
    ) -> Result<(), TestCaseError> {
        match fast.0 {
            true => prop_assert_eq!(fast, general),
            false => {
                prop_assert_eq!((&fast.1[..], fast.4), before);
                prop_assert_eq!((fast.2, fast.3), (14, false));
            }
        }
        Ok(())
    }

    proptest! {
        /// Whatever the fast path takes, it and its session become what the general path makes of
        /// them; whatever it leaves is as it was.
        #[test]
        fn both_paths_make_the_same_of_packets_and_sessions(
            new in sessions(), segments in segments(), flags in select(vec![ACK, ACK, SYN, 1, 4]),
            checksum in prop_oneof![Just(0), Just(0xffff), any::<u16>()],
            rest in prop::collection::vec(any::<u8>(), 16..90), edits in edits(),
            dont_fragment: bool, mtu_bytes in select(vec![100u16, 1280]), mss in 0u16..3,
        ) {
            let words = words_of(&new, &segments);
            let protocol = new.inside.protocol.0;
            let out = upper(protocol, new.inside.ports, flags, checksum, &rest);
            let bytes = edited(packet6(&new, &out), &edits);
            let fast = became(&bytes, words, |packet, session| {
                to4_fast(packet, session, IDENTIFICATION, NOW_S)
            });
            let general = became(&bytes, words, |packet, session| {
                let now = (NOW_S, mss);
                read6(packet)
                    .and_then(|read| to4(packet, &read, session, IDENTIFICATION, now))
                    .is_ok()
            });
            check((&bytes, words), &fast, &general)?;

            let Ports { destination: source, .. } = new.inside.ports;
            let ports = Ports { source, destination: new.external.port };
            let back = upper(protocol, ports, flags, checksum, &rest);
            let bytes = edited(packet4(&new, &back, dont_fragment), &edits);
            let fast = became(&bytes, words, |packet, session| {
                to6_fast(packet, (session, new.prefix), mtu_bytes, NOW_S)
            });
            let general = became(&bytes, words, |packet, session| {
                let by = (session, new.prefix);
                let done = read4(packet)
                    .and_then(|read| to6(packet, &read, by, mtu_bytes, (NOW_S, mss)));
                done == Ok(Done::Whole)
            });
            check((&bytes, words), &fast, &general)?;
        }

        /// Datagrams, and segments of connections that stand, take the fast path.
        #[test]
        fn what_changes_no_state_takes_the_fast_path(
            new in sessions(), checksum in 1u16..,
            rest in prop::collection::vec(any::<u8>(), 16..90),
        ) {
            let words = words_of(&new, &[(false, SYN | ACK), (true, ACK)]);
            let protocol = new.inside.protocol.0;
            let upper = upper(protocol, new.inside.ports, ACK, checksum, &rest);
            let out = became(&packet6(&new, &upper), words, |packet, session| {
                to4_fast(packet, session, IDENTIFICATION, NOW_S)
            });
            let back = became(&packet4(&new, &upper, true), words, |packet, session| {
                to6_fast(packet, (session, new.prefix), 100, NOW_S)
            });
            prop_assert!(out.0 && back.0);
            prop_assert_eq!(out.4, back.4);
        }
    }
}
