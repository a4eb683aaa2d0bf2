//! The control connection of FTP: its lines announce the ends of data connections.
//!
//! A line is looked at where it stands whole in one segment. The front of one that may announce an
//! end is cut off the segment that ends with it, and where nothing else is in the segment it is
//! dropped: its sender sends it again, with the rest of the line. So is a segment in front of which
//! something is missing. After [`HELD_MAX`] drops in a row it passes as it is.

use quiver_core::Packet;
use quiver_translation::flow::End;

use crate::alg::ftp::{self, Form, Named, Text};
use crate::alg::segment::{Edits, Segment};
use crate::alg::stream::Stream;
use crate::alg::{Announced, Count, Helped, Helper, may_be_announced};
use crate::node::Nat44Drop;
use crate::owned::Owner;
use crate::session::{Direction, flag};

/// Segments in a row that are held.
const HELD_MAX: u8 = 4;

/// A control connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Connection {
    /// Where the client's packets come from.
    client: Direction,
    /// The server has accepted to go on enciphered (RFC 4217 §4): there are no lines any more.
    is_secured: bool,
    streams: [Stream; 2],
}

impl Connection {
    pub fn new(client: Direction) -> Connection {
        Connection { client, is_secured: false, streams: [Stream::default(); 2] }
    }
}

/// A line that announces an end: where it is in the text.
type Found = Option<(usize, Named)>;

/// What a text announces, and how its stream stands behind it.
struct Reading {
    found: [Found; crate::alg::stream::CHANGES_MAX],
    stream: Stream,
    /// From here on it is to come again, with more behind it.
    unfinished: Option<usize>,
    /// What follows is enciphered.
    is_secured: bool,
}

/// RFC 4217 §4: the reply to AUTH that begins the security exchange.
const SECURED: &[u8] = b"234 ";

/// Read the lines of `text` from the first new byte on.
fn read(text: &[u8], new: usize, mut stream: Stream, is_client: bool) -> Reading {
    let mut found: [Found; crate::alg::stream::CHANGES_MAX] = Default::default();
    let (mut at, mut count, mut unfinished) = (new, 0, None);
    let mut is_secured = false;
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        let Some(end) = rest.iter().position(|byte| *byte == b'\n') else {
            let may_announce = !stream.in_line && ftp::is_unfinished(rest, is_client);
            unfinished = may_announce.then_some(at);
            stream.in_line = true;
            break;
        };
        let line = rest.get(..=end).unwrap_or_default();
        if !stream.in_line
            && let Some(named) = ftp::parse(line, is_client)
            && let Some(place) = found.get_mut(count)
        {
            *place = Some((at, named));
            count += 1;
        }
        is_secured |= !is_client && !stream.in_line && line.starts_with(SECURED);
        stream.in_line = false;
        at += end + 1;
    }
    Reading { found, stream, unfinished, is_secured }
}

/// What of a segment came before: texts that were replaced are replaced again.
fn again(
    segment: &Segment,
    stream: &Stream,
    (first, length): (u32, usize),
    edits: &mut Edits,
) -> Result<(), Nat44Drop> {
    for change in stream.changes() {
        let start = i64::from(change.start.wrapping_sub(first) as i32);
        let end = i64::from(change.end.wrapping_sub(first) as i32);
        if end <= 0 || start >= length as i64 {
            continue;
        }
        if start >= 0 && end <= length as i64 && segment.is_whole {
            let text = Text::new(change.form, change.external);
            edits.push((start as usize, (end - start) as usize, text));
        } else if length > 1 {
            // One byte is a probe, which says nothing (RFC 9293 §3.8.4 and §3.8.6.1).
            return Err(Nat44Drop::HelperGap);
        }
    }
    Ok(())
}

impl Owner {
    /// A packet of a control connection.
    pub(super) fn help_ftp(
        &mut self,
        helped: Helped<'_>,
        packet: &mut Packet,
    ) -> Result<(), Nat44Drop> {
        let Some(mut connection) = self.algs.connections.get(&helped.number).copied() else {
            return Ok(());
        };
        let Some(segment) = Segment::of(packet) else { return Ok(()) };
        let (own, other) = (helped.direction as usize, helped.direction.other() as usize);
        let mut edits = Edits::default();
        let done = if segment.flags & flag::SYN != 0 {
            let tcp = helped.session.tcp();
            let is_open = !tcp.is_closed() && !tcp.is_reset();
            connection.streams[own].begin(segment.sequence.wrapping_add(1), is_open);
            Ok(())
        } else {
            self.read_text(helped, packet, (&segment, &mut connection), &mut edits)
        };
        let [ours, theirs] = [connection.streams[own], connection.streams[other]];
        if let Some(place) = self.algs.connections.get_mut(&helped.number) {
            *place = connection;
        }
        done?;
        match segment.rewrite(packet, &ours, &theirs, &edits) {
            true => Ok(()),
            // It would not fit: the sender makes it shorter or gives up.
            false => Err(Nat44Drop::HelperGap),
        }
    }

    /// Read the text of a segment: what is to be replaced.
    fn read_text(
        &mut self,
        helped: Helped<'_>,
        packet: &Packet,
        (segment, connection): (&Segment, &mut Connection),
        edits: &mut Edits,
    ) -> Result<(), Nat44Drop> {
        let is_client = connection.client == helped.direction;
        let stream = &mut connection.streams[helped.direction as usize];
        let (first, length) = (segment.sequence, segment.text_len());
        if length == 0 {
            return Ok(());
        }
        again(segment, stream, (first, length), edits)?;
        if connection.is_secured {
            return Ok(());
        }
        let next = *stream.next.get_or_insert(first);
        let new = i64::from(next.wrapping_sub(first) as i32);
        if new >= length as i64 {
            return Ok(());
        }
        let Some(text) = segment.text(packet) else {
            if !segment.is_whole {
                // A fragment: where the next line begins is not known.
                stream.next = None;
            }
            return Ok(());
        };
        let is_patient = stream.held < HELD_MAX;
        if new < 0 && is_patient {
            stream.held += 1;
            return Err(Nat44Drop::HelperGap);
        }
        let new = new.max(0) as usize;
        let reading = read(text, new, *stream, is_client);
        let held = *stream;
        *stream = reading.stream;
        let mut end = length;
        match reading.unfinished {
            Some(at) if at > 0 => {
                end = at;
                edits.keep(at);
                stream.in_line = false;
            }
            Some(_) if is_patient => {
                *stream = held;
                stream.held += 1;
                return Err(Nat44Drop::HelperHeld);
            }
            _ => {}
        }
        (stream.next, stream.held) = (Some(first.wrapping_add(end as u32)), 0);
        connection.is_secured = reading.is_secured;
        for (line, named) in reading.found.into_iter().flatten() {
            let argument = named.argument.start + line..named.argument.end + line;
            if edits.is_full() {
                break;
            }
            let Some(external) = self.open(helped, &named) else { continue };
            let new = Text::new(named.form, external);
            let place = |at: usize| first.wrapping_add(at as u32);
            let (start, end) = (place(argument.start), place(argument.end));
            stream.note((start, end), new.bytes().len(), named.form, external);
            edits.push((argument.start, argument.len(), new));
            helped.count(Helper::Ftp, Count::Rewritten);
        }
        Ok(())
    }

    /// Open an end that a line announces. What the line is to say instead.
    fn open(&mut self, helped: Helped<'_>, named: &Named) -> Option<End> {
        let own = helped.own().source.address;
        let is_own = named.address.is_none_or(|address| address == own);
        let is_servers = matches!(named.form, Form::Pasv | Form::Epsv);
        if !helped.is_translated() && is_servers {
            // A host inside connects to it as to any other.
            return None;
        }
        if !is_own || !may_be_announced(named.port) {
            helped.count(Helper::Ftp, Count::Refused);
            return None;
        }
        self.announce(helped, Announced { helper: Helper::Ftp, port: named.port })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn lines(reading: &Reading) -> Vec<(usize, u16)> {
        reading.found.iter().flatten().map(|(at, named)| (*at, named.port)).collect()
    }

    fn within_a_line() -> Stream {
        let mut stream = Stream::default();
        stream.in_line = true;
        stream
    }

    #[test]
    fn lines_are_found_wherever_they_begin() {
        let text = b"rest of one\r\nPORT 10,0,0,2,4,1\r\nNOOP\r\nEPRT |1|10.0.0.2|1026|\r\n";
        let stream = within_a_line();
        let reading = read(text, 0, stream, true);
        assert_eq!(lines(&reading), [(13, 1025), (38, 1026)]);
        assert!(!reading.stream.in_line && reading.unfinished.is_none());
        // A name that looks like a command is none.
        let reading = read(b"STOR x PORT 10,0,0,2,4,1\r\n", 0, Stream::default(), true);
        assert!(lines(&reading).is_empty());
    }

    #[test]
    fn a_command_without_an_end_is_unfinished_and_other_text_is_not() {
        for (text, unfinished) in [
            (&b"PORT 10,0,0"[..], Some(0)),
            (b"NOOP\r\nEP", Some(6)),
            (b"NOOP\r\nRETR x", None),
            (b"NOOP\r\n", None),
        ] {
            assert_eq!(read(text, 0, Stream::default(), true).unfinished, unfinished);
        }
        let stream = within_a_line();
        let reading = read(b"PORT 10,0,0", 0, stream, true);
        assert!(reading.unfinished.is_none(), "it goes on with a line");
    }

    proptest! {
        /// However a text is cut into segments, the same lines are found that stand whole in one.
        #[test]
        fn segments_do_not_matter_that_end_with_lines(
            words in proptest::collection::vec(0usize..4, 1..4),
            cuts in proptest::collection::vec(any::<bool>(), 4),
        ) {
            let known = [
                "PORT 10,0,0,2,4,1\r\n",
                "NOOP\r\n",
                "LIST PORT 1,1\n",
                "EPRT |1|1.2.3.4|2000|\r\n",
            ];
            let mut stream = Stream::default();
            let (mut pending, mut found) = (String::new(), 0);
            for (word, cut) in words.iter().zip(cuts) {
                pending.push_str(known[*word]);
                if cut {
                    let reading = read(pending.as_bytes(), 0, stream, true);
                    found += lines(&reading).len();
                    stream = reading.stream;
                    pending.clear();
                }
            }
            found += lines(&read(pending.as_bytes(), 0, stream, true)).len();
            prop_assert_eq!(found, words.iter().filter(|word| [0, 3].contains(*word)).count());
        }

        #[test]
        fn no_text_makes_it_panic(text: Vec<u8>, new in 0usize..300, is_client: bool) {
            let reading = read(&text, new, Stream::default(), is_client);
            for (at, named) in reading.found.iter().flatten() {
                prop_assert!(at + named.argument.end <= text.len());
            }
        }
    }
}
