//! One sequence of commands: what holds after it, and which of its commands are to blame when it
//! does not.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use quiver_testkit::choices::{Choices, Numbers, Random};
use quiver_testkit::configuration::{
    self, Fault, START, changes_state, difference, kind_of, running,
};
use quiver_testkit::{Router, Settings};
use quiverd::features;

/// Commands in a sequence.
const COMMANDS: usize = 60;
/// Forms of commands that a sequence is made of: few, so that they meet.
const FORMS: usize = 14;
/// A router with everything that is built in, on this thread.
pub fn router(folder: &'static Path) -> Router {
    let settings = Settings { buffers: 256, runtime_dir: Some(folder), ..Settings::default() };
    Router::with(settings, &[features::built_in])
}

/// The commands of this seed, as they are taken: names of interfaces are those that exist by then.
pub fn sequence(seed: u64, folder: &'static Path) -> Vec<String> {
    let mut random = Random::new(seed);
    let mut router = router(folder);
    let all: Vec<(usize, String)> =
        router.commands().borrow().form_names().map(str::to_owned).enumerate().collect();
    let mut wanted: Vec<(usize, String)> =
        all.into_iter().filter(|(_, name)| changes_state(name)).collect();
    if random.below(2) == 0 {
        // Those of two families, which have more to do with each other.
        let family =
            |name: &str| name.replace("set ", "").split(' ').next().unwrap_or("").to_owned();
        let families = [0, 1].map(|_| family(&wanted[random.below(wanted.len())].1));
        wanted.retain(|(_, name)| families.contains(&family(name)));
    }
    let forms: Vec<usize> = (0..FORMS).map(|_| wanted[random.below(wanted.len())].0).collect();
    let mut lines = Vec::new();
    for line in START {
        if random.below(3) > 0 {
            lines.push(line.replace("{folder}", &folder.display().to_string()));
        }
    }
    lines.iter().for_each(|line| drop(router.execute(line)));
    for _ in 0..COMMANDS {
        let interfaces: Vec<String> =
            router.engine().all_interfaces().map(|interface| interface.name.clone()).collect();
        let form = forms[random.below(forms.len())];
        let density = [2, 5, 8][random.below(3)];
        let mut choices =
            Choices { numbers: &mut random, interfaces: &interfaces, folder, density };
        let line = router.commands().borrow().random_line(form, &mut choices);
        let done = catch_unwind(AssertUnwindSafe(|| router.execute(&line)));
        assert!(done.is_ok(), "seed {seed}: `{line}` panics after\n{}", lines.join("\n"));
        lines.push(line);
    }
    router.discard();
    lines
}

/// What does not hold after these commands.
pub fn fault(lines: &[String], folder: &'static Path) -> Option<Fault> {
    match catch_unwind(AssertUnwindSafe(|| check(lines, folder))) {
        Ok(fault) => fault,
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
            let text = text.unwrap_or_default();
            Some(Fault {
                kind: format!("panic {}", kind_of(&text)),
                text: format!("panic: {text}"),
            })
        }
    }
}

fn check(lines: &[String], folder: &'static Path) -> Option<Fault> {
    let mut router = router(folder);
    let mut before = running(&mut router);
    for line in lines {
        let done = router.execute(line);
        let after = running(&mut router);
        if let Err(refusal) = done
            && after != before
        {
            let text = format!(
                "`{line}` is refused ({refusal}) and changes\n{}",
                difference(&before, &after)
            );
            router.discard();
            return Some(Fault { kind: format!("refused but changed: {}", kind_of(line)), text });
        }
        before = after;
        router.step();
    }
    let shuffled = {
        let commands = router.commands();
        let mut random = Random::new(lines.len() as u64);
        commands.borrow().running_config_in(router.engine(), &mut |ready| random.below(ready))
    };
    router.discard();
    loads_again(&before, &before, folder).or_else(|| {
        let fault = loads_again(&shuffled, &before, folder)?;
        Some(Fault { kind: format!("in another order: {}", fault.kind), ..fault })
    })
}

fn loads_again(lines: &str, config: &str, folder: &'static Path) -> Option<Fault> {
    configuration::loads_again(router(folder), lines, config)
}

/// The fewest commands that lead to a fault of the same kind.
pub fn shrink(lines: Vec<String>, fault_of: &Fault, folder: &'static Path) -> (Vec<String>, Fault) {
    shrink_by(lines, fault_of, |lines| fault(lines, folder))
}

/// The same of another statement.
pub fn shrink_by(
    mut lines: Vec<String>,
    fault_of: &Fault,
    fault: impl Fn(&[String]) -> Option<Fault>,
) -> (Vec<String>, Fault) {
    let mut last = fault_of.clone();
    let mut size = lines.len().div_ceil(2);
    loop {
        let mut at = 0;
        let mut progress = false;
        while at < lines.len() {
            let end = (at + size).min(lines.len());
            let mut fewer = lines.clone();
            fewer.drain(at..end);
            match fault(&fewer) {
                Some(found) if found.kind == fault_of.kind => {
                    (lines, last, progress) = (fewer, found, true);
                }
                _ => at = end,
            }
        }
        match size {
            1 if !progress => return (lines, last),
            1 => {}
            _ => size = size.div_ceil(2),
        }
    }
}
