//! However a packet is cut, in whatever order and how often its fragments come, it is put together
//! as a naive model does it; and hostile fragments neither panic nor leak buffers.

use crate::stand;

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;
use stand::{Cut, Family, Four, Six, Whole, replies, router, send_all};

/// Cut at these places, rounded to 8 bytes.
fn cuts_at(length: usize, places: &[usize]) -> Vec<Cut> {
    let mut at: Vec<usize> = places.iter().map(|place| place % length / 8 * 8).collect();
    at.push(0);
    at.push(length);
    at.sort_unstable();
    at.dedup();
    at.windows(2).map(|ends| Cut { start: ends[0], end: ends[1], more: ends[1] < length }).collect()
}

fn family(six: bool) -> Family {
    if six { Six } else { Four }
}

/// What the rules say about fragments that come one after the other: bytes of the whole when they
/// become one, nothing else remembered than spans and bytes.
#[derive(Default)]
struct Model {
    spans: BTreeMap<usize, Vec<u8>>,
    end: Option<usize>,
    refused: bool,
}

impl Model {
    fn take(&mut self, cut: Cut, bytes: &[u8]) -> Option<Vec<u8>> {
        if self.refused {
            return None;
        }
        let is_last = !cut.more;
        if let Some(same) = self.spans.get(&cut.start)
            && same == bytes
            && is_last == (self.end == Some(cut.start + bytes.len()))
        {
            return None;
        }
        let overlaps = self
            .spans
            .iter()
            .any(|(start, other)| *start < cut.end && cut.start < start + other.len());
        let highest =
            self.spans.iter().map(|(start, other)| start + other.len()).max().unwrap_or(0);
        let ends_wrong = match (is_last, self.end) {
            (true, Some(_)) => true,
            (true, None) => highest > cut.end,
            (false, Some(end)) => cut.end > end,
            (false, None) => false,
        };
        if overlaps || ends_wrong {
            self.refused = true;
            return None;
        }
        self.spans.insert(cut.start, bytes.to_vec());
        if is_last {
            self.end = Some(cut.end);
        }
        let have: usize = self.spans.values().map(Vec::len).sum();
        if self.end != Some(have) {
            return None;
        }
        self.end = None;
        Some(std::mem::take(&mut self.spans).into_values().flatten().collect())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn any_cut_in_any_order_with_duplicates_is_the_same_packet(
        six: bool,
        length in 16usize..6000,
        places in prop::collection::vec(8usize..6000, 1..20),
        order in prop::collection::vec(any::<prop::sample::Index>(), 0..60),
    ) {
        let family = family(six);
        let mut router = router();
        let whole = Whole::echo(family, 9, length);
        let cuts = cuts_at(whole.payload.len(), &places);
        prop_assume!(cuts.len() > 1);
        // First any of them, some often; then all that were not.
        let mut sent = vec![false; cuts.len()];
        let mut frames = Vec::new();
        for place in &order {
            let place = place.index(cuts.len());
            if sent.iter().filter(|done| !**done).count() > 1 || sent[place] {
                sent[place] = true;
                frames.push(whole.frame(cuts[place]));
            }
        }
        for (place, cut) in cuts.iter().enumerate().filter(|(place, _)| !sent[*place]) {
            let _ = place;
            frames.push(whole.frame(*cut));
        }
        send_all(&mut router, &frames);
        let expected = whole.payload[8..].to_vec();
        prop_assert_eq!(replies(&mut router, family, "e0"), vec![expected]);
        prop_assert_eq!(router.buffers_in_use(), 0);
    }

    #[test]
    fn fragments_at_will_fare_as_in_the_model(
        six: bool,
        tries in prop::collection::vec(
            (0usize..12, 1usize..6, any::<bool>(), any::<bool>()), 1..40
        ),
    ) {
        let family = family(six);
        let mut router = router();
        router.cli("set interface reassembly e0 on");
        let whole = Whole::transit(family, 9, 400);
        let mut model = Model::default();
        let mut expected = Vec::new();
        for (start, length, more, forged) in tries {
            let (start, end) = (start * 8, (start + length) * 8);
            if start == 0 && !more {
                continue; // no fragment
            }
            let cut = Cut { start, end, more };
            let mut bytes = whole.payload[start..end].to_vec();
            if forged && start > 0 {
                bytes[0] ^= 1;
            }
            router.send("e0", &whole.frame_of(cut, &bytes));
            expected.extend(model.take(cut, &bytes));
        }
        let header = 14 + if family == Four { 20 } else { 40 };
        let left: Vec<Vec<u8>> =
            router.sent("e1").iter().map(|frame| frame[header..].to_vec()).collect();
        prop_assert_eq!(left, expected);
        let held: usize = model.spans.len();
        if !model.refused {
            prop_assert_eq!(router.buffers_in_use(), held);
        }
    }

    #[test]
    fn hostile_fragments_neither_panic_nor_leak(
        six: bool,
        is_virtual: bool,
        frames in prop::collection::vec(
            (any::<u16>(), any::<[u8; 12]>(), 0usize..200, any::<u8>()), 1..60
        ),
    ) {
        let family = family(six);
        let mut router = router();
        router.cli(if is_virtual {
            "set interface reassembly e0 virtual on"
        } else {
            "set interface reassembly e0 on"
        });
        router.cli("set ip reassembly max-reassemblies 5 max-reassembly-length 4");
        for (offset_more, bytes, cut_off, next) in frames {
            let whole = Whole::transit(family, u32::from(bytes[0] & 3), 200);
            let cut = Cut { start: 0, end: 200, more: true };
            let mut frame = whole.frame(cut);
            match family {
                Four => {
                    frame[20..22].copy_from_slice(&(offset_more & 0x3fff).to_be_bytes());
                    frame[23] = [1, 6, 17, next][usize::from(next & 3)];
                    frame[24..26].copy_from_slice(&[0, 0]);
                    let sum = quiver_wire::checksum::of(&frame[14..34]);
                    frame[24..26].copy_from_slice(&sum.to_be_bytes());
                }
                Six => {
                    frame[54] = [58, 44, 60, next][usize::from(next & 3)];
                    frame[56..58].copy_from_slice(&offset_more.to_be_bytes());
                }
            }
            frame[62..74].copy_from_slice(&bytes);
            frame.truncate(frame.len() - cut_off);
            router.send("e0", &frame);
        }
        prop_assert!(router.buffers_in_use() <= 20);
        router.advance(Duration::from_secs(61));
        prop_assert_eq!(router.buffers_in_use(), 0);
    }
}
