//! One direction of a TCP connection whose text changes its length on the way: which bytes were
//! replaced, and what sequence and acknowledgement numbers become (RFC 9293 §3.4).
//!
//! The numbers of the sender count the bytes that it sent, *original* ones; those of the receiver
//! count the bytes that it got, *replaced* ones.

use quiver_translation::flow::End;

use crate::alg::ftp::Form;

/// Changes that are remembered. Older ones are acknowledged: FTP answers each command before the
/// next one (RFC 959 §5.4).
pub(crate) const CHANGES_MAX: usize = 4;

/// Bytes that were replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    /// The original sequence numbers of the first of them and of the byte behind them.
    pub start: u32,
    pub end: u32,
    /// What is added to original numbers in front of them, and behind.
    before: i32,
    after: i32,
    /// What they became.
    pub form: Form,
    pub external: End,
}

/// Is a sequence number in front of another one (RFC 9293 §3.4)?
pub(crate) fn is_before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

fn plus(number: u32, offset: i32) -> u32 {
    number.wrapping_add_signed(offset)
}

fn minus(number: u32, offset: i32) -> u32 {
    number.wrapping_add_signed(offset.wrapping_neg())
}

/// A direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stream {
    /// Oldest first.
    changes: [Option<Change>; CHANGES_MAX],
    /// The original number of the first byte that has not come yet, once one is known.
    pub next: Option<u32>,
    /// Does that byte go on with a line?
    pub in_line: bool,
    /// Segments in a row that were held because they end within a command.
    pub held: u8,
    /// The original number of the first byte.
    first: Option<u32>,
}

impl Stream {
    /// A SYN came whose first byte of text has this number. One that comes again changes nothing,
    /// nor does another one while `is_open`: its numbers would not be the receiver's.
    pub fn begin(&mut self, first: u32, is_open: bool) {
        if self.first != Some(first) && (!is_open || self.changes[0].is_none()) {
            *self = Stream { next: Some(first), first: Some(first), ..Stream::default() };
        }
    }

    /// Changes, oldest first.
    pub fn changes(&self) -> impl DoubleEndedIterator<Item = Change> + use<> {
        self.changes.into_iter().flatten()
    }

    /// Do numbers stay what they are?
    pub fn is_unchanged(&self) -> bool {
        self.changes().all(|change| change.before == 0 && change.after == 0)
    }

    /// Bytes from `start` to `end` were replaced by `length` others. They are behind all that were
    /// replaced before.
    pub fn note(&mut self, (start, end): (u32, u32), length: usize, form: Form, external: End) {
        let before = self.changes().next_back().map_or(0, |last| last.after);
        let gained = length as i32 - end.wrapping_sub(start) as i32;
        let after = before.wrapping_add(gained);
        if self.changes.iter().all(Option::is_some) {
            self.changes.rotate_left(1);
            self.changes[CHANGES_MAX - 1] = None;
        }
        let place = self.changes.iter_mut().find(|place| place.is_none());
        if let Some(place) = place {
            *place = Some(Change { start, end, before, after, form, external });
        }
    }

    /// The number that the receiver knows the byte by that the sender calls `number`.
    pub fn replaced(&self, number: u32) -> u32 {
        for Change { start, end, before, after, .. } in self.changes().rev() {
            if !is_before(number, end) {
                return plus(number, after);
            }
            if is_before(start, number) {
                // Within: no further than the last byte that replaced it.
                let length = plus(end, after).wrapping_sub(plus(start, before));
                let into = number.wrapping_sub(start).min(length.saturating_sub(1));
                return plus(start, before).wrapping_add(into);
            }
        }
        plus(number, self.changes().next().map_or(0, |oldest| oldest.before))
    }

    /// The number that the sender knows the byte by that the receiver calls `number`. Of one that
    /// replaced others it is that of the first replaced byte, so that none is acknowledged that did
    /// not come; `is_left` (the left edge of a SACK block) means the byte behind them.
    pub fn original(&self, number: u32, is_left: bool) -> u32 {
        for Change { start, end, before, after, .. } in self.changes().rev() {
            if !is_before(number, plus(end, after)) {
                return minus(number, after);
            }
            if is_before(plus(start, before), number) {
                return if is_left { end } else { start };
            }
        }
        minus(number, self.changes().next().map_or(0, |oldest| oldest.before))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const END: End = End { address: 1, port: 2 };

    fn streamed(first: u32, changes: &[(u32, u32, usize)]) -> Stream {
        let mut stream = Stream::default();
        stream.begin(first, false);
        for (start, length, new) in changes {
            let from = first.wrapping_add(*start);
            stream.note((from, from.wrapping_add(*length)), *new, Form::Port, END);
        }
        stream
    }

    #[test]
    fn a_second_syn_changes_nothing_while_the_connection_is_open() {
        let mut stream = streamed(100, &[(5, 10, 14)]);
        let before = stream;
        stream.begin(100, true);
        assert_eq!(stream, before, "it came again");
        stream.begin(7_000, true);
        assert_eq!(stream, before, "somebody's else");
        stream.begin(7_000, false);
        assert_eq!((stream.next, stream.is_unchanged()), (Some(7_000), true), "a new connection");
    }

    #[test]
    fn what_acknowledges_a_part_of_a_replaced_text_acknowledges_none_of_it() {
        let stream = streamed(100, &[(5, 10, 14)]);
        assert_eq!(stream.original(105, false), 105);
        assert_eq!(stream.original(112, false), 105);
        assert_eq!(stream.original(119, false), 115);
        assert_eq!(stream.original(112, true), 115);
        assert_eq!(stream.replaced(115), 119);
        assert_eq!(stream.replaced(105), 105);
    }

    proptest! {
        /// A naive model: the text itself, each original byte with the place that it went to.
        #[test]
        fn numbers_of_bytes_that_stay_are_mapped_there_and_back(
            first: u32,
            parts in proptest::collection::vec((1u32..40, 1u32..24, 1usize..24), 0..CHANGES_MAX),
            at in 0u32..400,
        ) {
            let (mut original, mut replaced) = (0u32, 0u32);
            let (mut changes, mut stays) = (Vec::new(), Vec::new());
            for (gap, old, new) in parts {
                (0..gap).for_each(|n| stays.push((original + n, replaced + n)));
                original += gap;
                changes.push((original, old, new));
                original += old;
                replaced += gap + new as u32;
            }
            (0..100).for_each(|n| stays.push((original + n, replaced + n)));
            let stream = streamed(first, &changes);
            let (from, to) = stays[at as usize % stays.len()];
            let (from, to) = (first.wrapping_add(from), first.wrapping_add(to));
            prop_assert_eq!(stream.replaced(from), to);
            prop_assert_eq!(stream.original(to, false), from);
            prop_assert_eq!(stream.original(to, true), from);
        }

        /// Numbers keep their order, whatever is between them.
        #[test]
        fn numbers_keep_their_order(
            parts in proptest::collection::vec((1u32..40, 1u32..24, 1usize..24), 1..9),
            numbers: (u16, u16),
        ) {
            let mut at = 0;
            let changes: Vec<_> = parts.into_iter().map(|(gap, old, new)| {
                at += gap + old;
                (at - old, old, new)
            }).collect();
            let stream = streamed(0xffff_ff00, &changes);
            let number = |n: u16| 0xffff_ff00u32.wrapping_add(u32::from(n) % 400);
            let (low, high) = (numbers.0.min(numbers.1), numbers.0.max(numbers.1));
            let (low, high) = match u32::from(low) % 400 <= u32::from(high) % 400 {
                true => (number(low), number(high)),
                false => (number(high), number(low)),
            };
            prop_assert!(!is_before(stream.replaced(high), stream.replaced(low)));
            prop_assert!(!is_before(stream.original(high, false), stream.original(low, false)));
        }
    }
}
