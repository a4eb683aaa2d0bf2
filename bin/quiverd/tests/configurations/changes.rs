//! From every configuration to every other: the changes between two, executed on a router that has
//! the one, give it the other, and back.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use quiver_control::Changes;
use quiver_testkit::Router;
use quiver_testkit::choices::{Numbers, Random};
use quiver_testkit::configuration::{Fault, difference, kind_of, running};

use super::case;

/// Two sequences of commands: in half of all cases the second one is made of the first, of which a
/// third is left out.
pub fn pair(seed: u64, folder: &'static Path) -> [Vec<String>; 2] {
    let first = case::sequence(2 * seed, folder);
    let second = case::sequence(2 * seed + 1, folder);
    if seed % 2 == 1 {
        return [first, second];
    }
    let mut random = Random::new(seed);
    let mut mixed: Vec<String> = first.iter().filter(|_| random.below(3) > 0).cloned().collect();
    for _ in 0..mixed.len() / 4 {
        let (from, to) = (random.below(first.len()), random.below(mixed.len()));
        mixed.insert(to, first[from].clone());
    }
    if random.below(2) == 0 {
        mixed.extend(second);
    }
    [first, mixed]
}

/// A router on which these lines were executed, as far as they are taken.
fn loaded(lines: &[String], folder: &'static Path) -> Router {
    let mut router = case::router(folder);
    lines.iter().for_each(|line| drop(router.execute(line)));
    router.step();
    router
}

/// The configuration that these lines lead to.
fn configuration(lines: &[String], folder: &'static Path) -> String {
    let mut router = loaded(lines, folder);
    let config = running(&mut router);
    router.discard();
    config
}

/// What does not hold between two sequences of commands.
pub fn fault(first: &[String], second: &[String], folder: &'static Path) -> Option<Fault> {
    let found = catch_unwind(AssertUnwindSafe(|| {
        let wanted = configuration(second, folder);
        let mut router = loaded(first, folder);
        let before = running(&mut router);
        let found = leads_to(&mut router, &wanted)
            .or_else(|| leads_to(&mut router, &before).map(|fault| back(fault, &before, &wanted)));
        router.discard();
        found.map(|fault| Fault {
            text: format!("{}\n--- from\n{before}--- to\n{wanted}", fault.text),
            ..fault
        })
    }));
    found.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned().unwrap_or_default();
        Some(Fault { kind: format!("panic {}", kind_of(&text)), text })
    })
}

fn back(fault: Fault, before: &str, wanted: &str) -> Fault {
    Fault {
        kind: fault.kind,
        text: format!("on the way back: {}\n(back from\n{wanted}to\n{before})", fault.text),
    }
}

/// Executes the changes between what the router has and `wanted`.
fn leads_to(router: &mut Router, wanted: &str) -> Option<Fault> {
    let before = running(router);
    let commands = router.commands();
    let changes = {
        let commands = commands.borrow();
        commands.changes_between(router.engine(), &before, wanted)
    };
    let changes = match changes {
        Ok(changes) => changes,
        Err(mistakes) => {
            let (text, line) = mistakes
                .first()
                .map(|first| {
                    let line = before.lines().chain(wanted.lines());
                    let line = line.filter(|line| !line.is_empty()).nth(first.line as usize);
                    (first.refusal.to_string(), line.unwrap_or("").to_owned())
                })
                .unwrap_or_default();
            return Some(Fault {
                kind: format!("mistake: {}", kind_of(&text)),
                text: format!("{text} near {line}\n{mistakes:?}"),
            });
        }
    };
    for change in &changes.commands {
        if let Err(refusal) = router.execute(&change.command) {
            let text = format!("`{}` is refused: {refusal}\n{}", change.command, listed(&changes));
            let kind =
                format!("refused: {}: {}", kind_of(&change.command), kind_of(refusal.what()));
            return Some(Fault { kind, text });
        }
        router.step();
    }
    let after = running(router);
    let lines = |text: &str| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    if lines(&after) != lines(wanted) {
        let differs = difference(wanted, &after);
        let kind =
            format!("is another: {}", differs.lines().next().map(kind_of).unwrap_or_default());
        return Some(Fault { kind, text: format!("{differs}\n{}", listed(&changes)) });
    }
    None
}

fn listed(changes: &Changes) -> String {
    let commands = changes.commands.iter().map(|change| format!("  {}\n", change.command));
    format!("by\n{}", commands.collect::<String>())
}

/// The fewest commands that lead to a fault of the same kind.
pub fn shrink(
    mut lines: [Vec<String>; 2],
    fault_of: &Fault,
    folder: &'static Path,
) -> ([Vec<String>; 2], Fault) {
    let mut last = fault_of.clone();
    let mut size = lines.iter().map(Vec::len).max().unwrap_or(0).div_ceil(2).max(1);
    loop {
        let mut progress = false;
        for side in [0, 1] {
            let mut at = 0;
            while at < lines[side].len() {
                let end = (at + size).min(lines[side].len());
                let mut fewer = lines.clone();
                fewer[side].drain(at..end);
                match fault(&fewer[0], &fewer[1], folder) {
                    Some(found) if found.kind == fault_of.kind => {
                        (lines, last, progress) = (fewer, found, true);
                    }
                    _ => at = end,
                }
            }
        }
        match size {
            1 if !progress => return (lines, last),
            1 => {}
            _ => size = size.div_ceil(2),
        }
    }
}
