//! What becomes of one frame, in words: what leaves by which port, and what is counted.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use quiver_testkit::{Router, Settings};

use super::seen::forms;

/// What is counted beside drops: all of nodes of segments.
fn counts(router: &Router) -> BTreeMap<String, u64> {
    let segments = |node: &str| node.starts_with("sr-");
    let drops = router.dropped().into_iter().map(|(node, why, n)| {
        let node = if segments(&node) { String::new() } else { format!("{node}:") };
        (format!("-{node}{why}"), n)
    });
    let events = router.events().into_iter().filter(|(node, ..)| segments(node));
    let mut sum = BTreeMap::new();
    for (what, n) in drops.chain(events.map(|(_, why, n)| (why, n))) {
        *sum.entry(what).or_default() += n;
    }
    sum
}

/// An ICMP error in a frame: `4/0@43`.
fn icmp_error(frame: &[u8]) -> Option<String> {
    match (frame.get(12..14)?, frame.get(20)?, frame.get(23)?) {
        ([0x86, 0xdd], 58, _) if *frame.get(54)? < 128 => {
            let rest = u32::from_be_bytes(*frame.get(58..)?.first_chunk()?);
            Some(format!("{}/{}@{rest}", frame[54], frame[55]))
        }
        ([8, 0], _, 1) => {
            let rest = u16::from_be_bytes(*frame.get(40..)?.first_chunk()?);
            Some(format!("v4:{}/{}@{rest}", frame[34], frame[35]))
        }
        _ => None,
    }
}

/// What becomes of a frame, in words.
pub fn outcome(router: &mut Router, port: &str, frame: &[u8]) -> (String, Vec<Vec<u8>>) {
    let ports: Vec<String> =
        router.interfaces().into_iter().filter(|name| name.starts_with('e')).collect();
    // In the first vector the chain of nodes is found.
    (0..2).for_each(|_| router.send(port, frame));
    ports.iter().for_each(|port| drop(router.sent(port)));
    let before = counts(router);
    router.send(port, frame);
    let (mut words, mut frames) = (String::new(), Vec::new());
    for port in &ports {
        for sent in router.sent(port) {
            let what = icmp_error(&sent).unwrap_or_else(|| "on".into());
            let _ = write!(words, " {port}:{what}");
            frames.push(sent);
        }
    }
    for (what, n) in counts(router) {
        let more = n - before.get(&what).copied().unwrap_or(0);
        assert!(more <= 1, "{what} is counted {more} times");
        if more == 1 {
            let _ = write!(words, " {what}");
        }
    }
    (words.trim().to_owned(), frames)
}

/// A table of fates: for each of these classes, what becomes of a packet, and for whom. `frame`
/// says by which port a frame comes, and which.
pub fn table<N: Copy>(
    router: &mut Router,
    classes: &[&str],
    names: &[(&str, N)],
    mut frame: impl FnMut(usize, N) -> (&'static str, Vec<u8>),
) -> (String, Vec<Vec<u8>>) {
    let (mut text, mut frames) = (String::new(), Vec::new());
    for (number, class) in classes.iter().enumerate() {
        let mut by_outcome: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        for (name, whose) in names {
            let (port, bytes) = frame(number, *whose);
            let (words, out) = outcome(router, port, &bytes);
            by_outcome.entry(words).or_default().push(name);
            frames.extend(out);
        }
        let _ = writeln!(text, "{class}");
        for (words, names) in by_outcome {
            let _ = writeln!(text, "    {words} | {}", names.join(" "));
        }
    }
    (text, frames)
}

/// The table is this one, behind its head, in every form; frames are alike, and nothing else has
/// changed.
pub fn assert_same_fate(
    file: &str,
    router: impl Fn(Settings) -> Router,
    table: impl Fn(&mut Router) -> (String, Vec<Vec<u8>>),
) {
    let expected = file.split_once("\n\n").expect("a head").1;
    let mut first: Option<Vec<Vec<u8>>> = None;
    for form in forms() {
        let mut router = router(form);
        let configured = router.cli("show running-config");
        let (text, frames) = table(&mut router);
        assert!(text == expected, "{form:?}: the table is\n{text}");
        assert_eq!(*first.get_or_insert_with(|| frames.clone()), frames);
        assert_eq!(router.cli("show running-config"), configured);
        assert_eq!(router.buffers_in_use(), 0);
    }
}
