//! Every configuration as a YAML document and back: the same lines, the same text, and what the
//! schema says.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use quiver_control::document::{Comments, Language};
use quiver_testkit::configuration::{Fault, difference, kind_of, running};
use serde_json::Value;

use super::case;

/// What does not hold of the document of the configuration that these lines lead to.
pub fn fault(lines: &[String], folder: &'static Path) -> Option<Fault> {
    let found = catch_unwind(AssertUnwindSafe(|| check(lines, folder)));
    found.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned().unwrap_or_default();
        Some(Fault { kind: format!("panic {}", kind_of(&text)), text })
    })
}

fn check(lines: &[String], folder: &'static Path) -> Option<Fault> {
    let mut router = case::router(folder);
    lines.iter().for_each(|line| drop(router.execute(line)));
    router.step();
    let config = running(&mut router);
    router.discard();
    let fresh = case::router(folder);
    let found = of_configuration(fresh, &config);
    found.map(|fault| Fault { text: format!("{}\n--- of\n{config}", fault.text), ..fault })
}

fn of_configuration(mut fresh: quiver_testkit::Router, config: &str) -> Option<Fault> {
    let commands = fresh.commands();
    let commands = commands.borrow();
    let document = match commands.document_of(config) {
        Ok(document) => document,
        Err(refusal) => {
            let kind = format!("not written: {}", kind_of(refusal.what()));
            return Some(Fault { kind, text: refusal.to_string() });
        }
    };
    let yaml = document.yaml(&Comments::default());
    let faults = super::schema::faults(&commands.document_schema(), &document.json());
    if let Some(first) = faults.first() {
        let kind = format!("against the schema: {}", kind_of(first));
        return Some(Fault { kind, text: format!("{}\n{yaml}", faults.join("\n")) });
    }
    let wanted = match commands.read_configuration(fresh.engine(), &yaml, Language::Yaml) {
        Ok(wanted) => wanted,
        Err(mistakes) => {
            let first = mistakes.first().map(|m| m.refusal.to_string()).unwrap_or_default();
            let kind = format!("not read: {}", kind_of(&first));
            return Some(Fault { kind, text: format!("{mistakes:#?}\n{yaml}") });
        }
    };
    let changes = match commands.changes_between(fresh.engine(), config, &wanted.text) {
        Ok(changes) => changes,
        Err(mistakes) => {
            let text = format!("{mistakes:#?}\n{yaml}\n{}", wanted.text);
            return Some(Fault { kind: "no configuration".to_owned(), text });
        }
    };
    let different: Vec<String> = changes.removed.iter().chain(&changes.added).cloned().collect();
    if let Some(first) = different.first() {
        let kind = format!("other lines: {}", kind_of(first));
        return Some(Fault { kind, text: format!("{changes:#?}\n{yaml}") });
    }
    for line in wanted.text.lines() {
        if let Err(refusal) = fresh.execute(line) {
            let kind = format!("refused: {}: {}", kind_of(line), kind_of(refusal.what()));
            let text = format!("`{line}`: {refusal}\n{yaml}\n{}", wanted.text);
            fresh.discard();
            return Some(Fault { kind, text });
        }
    }
    fresh.step();
    let after = commands.running_config(fresh.engine());
    fresh.discard();
    let again = commands.document_of(&after).map(|again| again.yaml(&Comments::default()));
    if again.as_deref() == Ok(yaml.as_str()) {
        return None;
    }
    let again = again.unwrap_or_else(|refusal| refusal.to_string());
    let differs = difference(&yaml, &again);
    let kind = format!("another text: {}", differs.lines().next().map(kind_of).unwrap_or_default());
    Some(Fault { kind, text: format!("{differs}\n{yaml}\n{}", wanted.text) })
}

/// A document that the schema must refuse, made of one that it takes.
pub fn spoiled(document: &Value) -> Vec<Value> {
    let mut out = Vec::new();
    let mut unknown = document.clone();
    unknown["interface"] = Value::from(1);
    out.push(unknown);
    if let Some((name, _)) = document["interfaces"].as_object().and_then(|all| all.iter().next()) {
        for (key, value) in [("mtu", "large"), ("state", "sideways"), ("adresses", "10.0.0.1/8")] {
            let mut wrong = document.clone();
            wrong["interfaces"][name][key] = Value::from(value);
            out.push(wrong);
        }
    }
    out
}
