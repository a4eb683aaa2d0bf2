//! PPTP: messages of the control connection name calls, by which packets of GRE are known (RFC 2637
//! §2 and §4.1). GRE says the call of who receives a packet alone, so a call of each end is a
//! session of its own, that of one direction:
//!
//! | call of | packets from inside | packets from outside |
//! | --- | --- | --- |
//! | the host inside | none: its number in the place of the source port | to its number outside |
//! | the host outside | to its number | none: its number in the place of the source port |

use quiver_core::Packet;
use quiver_translation::flow::{End, Flow};
use quiver_wire::IpProtocol;

use crate::alg::segment::Segment;
use crate::alg::{Count, Helped, Helper};
use crate::flows::{Plan, admit};
use crate::owned::Owner;
use crate::session::{Direction, Flags};

/// RFC 2637 §1.4: "The Magic Cookie is always sent as the constant 0x1A2B3C4D."
const COOKIE: [u8; 4] = [0x1a, 0x2b, 0x3c, 0x4d];
/// RFC 2637 §1.4: control messages are of this type.
const CONTROL_MESSAGE: u16 = 1;
/// Bytes of a message up to its second call.
const MESSAGE_BYTES_MIN: usize = 16;
/// Calls that one segment may name: those of four messages.
const CALLS_MAX: usize = 8;
/// Numbers that are tried for a call whose own one is in use.
const TRIES: usize = 64;

/// Whose call a field of a message names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whose {
    Sender,
    Receiver,
}

/// A call that a message names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Call {
    /// Where in the text.
    at: usize,
    whose: Whose,
    number: u16,
    /// Does the message begin it?
    begins: bool,
}

/// The calls of a control message (RFC 2637 §2.7 to §2.15): where they are in it, and whose.
fn fields(kind: u16) -> &'static [(usize, Whose)] {
    match kind {
        // Outgoing-Call-Request, Incoming-Call-Request, Call-Clear-Request, Call-Disconnect-Notify
        7 | 9 | 12 | 13 => &[(12, Whose::Sender)],
        // Outgoing-Call-Reply, Incoming-Call-Reply
        8 | 10 => &[(12, Whose::Sender), (14, Whose::Receiver)],
        // Incoming-Call-Connected, WAN-Error-Notify, Set-Link-Info
        11 | 14 | 15 => &[(12, Whose::Receiver)],
        _ => &[],
    }
}

fn word(text: &[u8], at: usize) -> Option<u16> {
    text.get(at..)?.first_chunk().map(|word| u16::from_be_bytes(*word))
}

/// The calls that the messages of a segment name. What does not begin with a message names none.
fn calls(text: &[u8]) -> [Option<Call>; CALLS_MAX] {
    let mut all = [None; CALLS_MAX];
    let (mut at, mut count) = (0, 0);
    while let Some(message) = text.get(at..).filter(|rest| rest.len() >= MESSAGE_BYTES_MIN) {
        let length = word(message, 0).map_or(0, usize::from);
        let is_message = word(message, 2) == Some(CONTROL_MESSAGE)
            && message.get(4..8) == Some(&COOKIE[..])
            && (MESSAGE_BYTES_MIN..=message.len()).contains(&length);
        let Some(kind) = word(message, 8).filter(|_| is_message) else { break };
        for (field, whose) in fields(kind) {
            let number = word(message, *field).unwrap_or(0);
            let begins = (7..=10).contains(&kind);
            if let Some(place) = all.get_mut(count).filter(|_| number != 0) {
                *place = Some(Call { at: at + field, whose: *whose, number, begins });
                count += 1;
            }
        }
        at += length;
    }
    all
}

/// The ends of a control connection, as flows of GRE that name no call.
struct Ends {
    inside: Flow,
    outside: Flow,
}

impl Ends {
    fn of(helped: &Helped<'_>) -> Ends {
        let flow = |direction| {
            let Flow { source, destination, table, .. } = helped.session.flow(direction);
            let end = |end: End| End { port: 0, ..end };
            let protocol = IpProtocol::GRE;
            Flow { source: end(source), destination: end(destination), protocol, table }
        };
        Ends { inside: flow(Direction::InToOut), outside: flow(Direction::OutToIn) }
    }

    /// The flows of the call `number` of the host inside, which is `external` outside.
    fn of_inside(&self, number: u16, external: u16) -> (Flow, Flow) {
        let Ends { inside, outside } = *self;
        let inside = Flow { source: End { port: number, ..inside.source }, ..inside };
        let destination = End { port: external, ..outside.destination };
        (inside, Flow { destination, ..outside })
    }

    /// The flows of the call `number` of the host outside.
    fn of_outside(&self, number: u16) -> (Flow, Flow) {
        let Ends { inside, outside } = *self;
        let inside = Flow { destination: End { port: number, ..inside.destination }, ..inside };
        (inside, Flow { source: End { port: number, ..outside.source }, ..outside })
    }
}

impl Owner {
    /// A segment of a control connection.
    pub(super) fn help_pptp(&mut self, helped: Helped<'_>, packet: &mut Packet) {
        if helped.session.flags().has(Flags::HAIRPIN) {
            return;
        }
        let Some(segment) = Segment::of(packet) else { return };
        let Some(text) = segment.text(packet) else { return };
        let mut all = calls(text);
        let ends = Ends::of(&helped);
        let mut has_changed = false;
        for call in all.iter_mut().flatten() {
            let new = match (call.whose, helped.direction) {
                (Whose::Sender, Direction::InToOut) => self.call_of_inside(helped, &ends, *call),
                (Whose::Sender, Direction::OutToIn) => {
                    self.note_call_of_outside(helped, &ends, *call);
                    None
                }
                (Whose::Receiver, Direction::OutToIn) => {
                    let (_, outside) = ends.of_inside(0, call.number);
                    self.call_of(&outside, Direction::OutToIn).map(|flow| flow.source.port)
                }
                (Whose::Receiver, Direction::InToOut) => None,
            };
            has_changed |= new.is_some_and(|new| new != call.number);
            call.number = new.unwrap_or(call.number);
        }
        if has_changed {
            segment.change_text(packet, |text| {
                for Call { at, number, .. } in all.into_iter().flatten() {
                    if let Some(place) = text.get_mut(at..).and_then(|b| b.first_chunk_mut()) {
                        *place = number.to_be_bytes();
                    }
                }
            });
            helped.count(Helper::Pptp, Count::Rewritten);
        }
    }

    /// The other flow of the call whose packets of `direction` have a flow.
    fn call_of(&self, flow: &Flow, direction: Direction) -> Option<Flow> {
        let (number, found) = self.writer.get(&flow.key())?;
        let session = crate::session::Session(self.writer.objects().get(number));
        (found == direction as usize).then(|| session.flow(direction.other()))
    }

    /// The number outside of a call of the host inside.
    fn call_of_inside(&mut self, helped: Helped<'_>, ends: &Ends, call: Call) -> Option<u16> {
        let (inside, _) = ends.of_inside(call.number, 0);
        if let Some(outside) = self.call_of(&inside, Direction::InToOut) {
            return Some(outside.destination.port);
        }
        if !call.begins {
            return None;
        }
        let is_free = |owner: &Owner, number: u16| {
            number != 0 && owner.writer.get(&ends.of_inside(0, number).1.key()).is_none()
        };
        let mut number = Some(call.number).filter(|number| is_free(self, *number));
        for _ in 0..TRIES {
            let drawn = (self.random() >> 48) as u16;
            number = number.or(Some(drawn).filter(|number| is_free(self, *number)));
        }
        let made =
            number.filter(|number| self.make_call(helped, ends.of_inside(call.number, *number)));
        helped.count(Helper::Pptp, if made.is_some() { Count::Opened } else { Count::Failed });
        made
    }

    /// A call of the host outside: its number stays.
    fn note_call_of_outside(&mut self, helped: Helped<'_>, ends: &Ends, call: Call) {
        let flows = ends.of_outside(call.number);
        if !call.begins || self.call_of(&flows.0, Direction::InToOut).is_some() {
            return;
        }
        let made = self.make_call(helped, flows);
        helped.count(Helper::Pptp, if made { Count::Opened } else { Count::Failed });
    }

    fn make_call(&mut self, helped: Helped<'_>, (inside, outside): (Flow, Flow)) -> bool {
        let mut flags = Flags::CALL.with(helped.flags_of_twice().unwrap_or_default());
        if helped.session.flags().has(Flags::COUNTED) {
            let host = (inside.table, inside.source.address);
            let to = (self.bindings.as_deref_mut(), &mut self.log);
            match admit(to, helped.rules, host, helped.at) {
                Ok(admitted) => flags = flags.with(admitted),
                Err(_) => return false,
            }
        }
        let plan = Plan { inside, outside, flags };
        self.begin_session(helped.rules, plan, (helped.direction, 0), helped.at).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn message(kind: u16, calls: [u16; 2]) -> Vec<u8> {
        let mut bytes = [0, 16, 0, 1, 0x1a, 0x2b, 0x3c, 0x4d].to_vec();
        for word in [kind, 0, calls[0], calls[1]] {
            bytes.extend(word.to_be_bytes());
        }
        bytes
    }

    fn of(text: &[u8]) -> Vec<(usize, Whose, u16)> {
        calls(text).into_iter().flatten().map(|call| (call.at, call.whose, call.number)).collect()
    }

    #[test]
    fn calls_of_all_messages_of_a_segment_are_found() {
        let text = [message(1, [9, 9]), message(8, [5, 6]), message(15, [7, 0])].concat();
        let wanted = [(28, Whose::Sender, 5), (30, Whose::Receiver, 6), (44, Whose::Receiver, 7)];
        assert_eq!(of(&text), wanted);
    }

    #[test]
    fn what_is_no_message_names_no_call() {
        let good = message(7, [5, 0]);
        assert_eq!(of(&good).len(), 1);
        for (at, value) in [(1, 15), (1, 17), (3, 2), (4, 0), (9, 200)] {
            let mut bad = good.clone();
            bad[at] = value;
            assert!(of(&bad).is_empty(), "byte {at}");
        }
        assert!(of(&good[..15]).is_empty());
        assert!(of(&message(7, [0, 0])).is_empty(), "call 0 is none");
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text: Vec<u8>, kind in 0u16..20, pairs: [u16; 2]) {
            let _ = calls(&text);
            let all = [message(kind, pairs), text].concat();
            prop_assert!(of(&all).iter().all(|(at, ..)| at + 2 <= all.len()));
        }
    }
}
