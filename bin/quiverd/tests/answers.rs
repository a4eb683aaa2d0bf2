//! The JSON answer of every `show` of the real router has a published form, and keeps it.

use quiver_control::answers;
use quiver_testkit::{Router, Settings};
use quiverd::features;
use serde_json::Value;

/// A router with something of every kind that a show can list, without devices of the host.
const SETUP: &str = include_str!("answers.cli");

fn router() -> Router {
    let mut router = Router::whole(Settings::default(), features::register);
    for port in ["e0", "e1", "e2", "e3", "e4", "e5", "e6", "e7"] {
        router.interface(port);
    }
    if let Err(refusal) = router.script("answers.cli", SETUP) {
        panic!("{refusal}");
    }
    router
}

/// The lines of all shows that can be answered here: each declared example, and each form with the
/// words of its declaration.
fn lines(router: &Router) -> Vec<String> {
    let commands = router.commands();
    let commands = commands.borrow();
    let mut lines: Vec<String> = commands.samples();
    lines.extend(commands.examples());
    lines.extend(commands.shows().map(str::to_owned));
    lines.retain(|line| line.starts_with("show "));
    // Most examples speak of e0; the same of the interfaces that have something to show.
    let more = lines.iter().flat_map(|line| {
        ["bvi", "e1", "e2", "BondEthernet0"].map(|name| line.replace(" e0", &format!(" {name}")))
    });
    let more: Vec<String> = more.collect();
    lines.extend(more);
    lines.sort();
    lines.dedup();
    lines
}

#[test]
fn every_show_answers_in_its_published_form_on_a_router_with_something_of_every_kind() {
    let mut router = router();
    let mut faults = Vec::new();
    for line in lines(&router) {
        if let Ok(output) = router.execute(&line) {
            faults.extend(
                answers::faults(&output.to_json()).into_iter().map(|fault| format!("{line}: {fault}")),
            );
        }
    }
    faults.retain(|fault| !fault.starts_with("show schema"));
    assert!(faults.is_empty(), "{faults:#?}");
}

#[test]
fn every_show_answers_in_its_published_form_on_an_empty_router() {
    let mut router = Router::whole(Settings::default(), features::register);
    for line in lines(&router) {
        let _ = router.execute(&line); // the test router compares each answer
    }
}

#[test]
fn every_show_has_a_published_form() {
    let router = Router::whole(Settings::default(), features::register);
    let commands = router.commands();
    let commands = commands.borrow();
    let published = answers::read(include_str!("../answers.json"));
    let missing: Vec<&str> =
        commands.shows().filter(|name| !published.contains_key(*name) && *name != "show schema").collect();
    assert!(missing.is_empty(), "`make answers` publishes: {missing:#?}");
    let known: Vec<&str> = commands.shows().collect();
    let gone: Vec<&String> = published.keys().filter(|name| !known.contains(&name.as_str())).collect();
    assert!(gone.is_empty(), "published for commands that are gone: {gone:#?}");
}

#[test]
fn the_published_form_is_answered_by_a_command() {
    let mut router = Router::whole(Settings::default(), features::register);
    let form = router.json("show schema interface");
    assert_eq!(form["properties"]["interfaces"]["items"]["properties"]["mtu_bytes"]["type"], "integer");
    assert_eq!(router.json("show schema show interface json"), form);
    assert!(router.json("show schema").as_object().is_some_and(|all| all.len() > 50));
    assert!(router.refused("show schema interfaec").contains("did you mean show interface?"));
}

/// A value that has a published form.
fn sample(schema: &Value) -> Value {
    let types = schema["type"].as_array().cloned().unwrap_or_else(|| vec![schema["type"].clone()]);
    let is = |name: &str| types.iter().any(|one| one == name);
    match () {
        () if is("object") => {
            let members = schema["properties"].as_object().into_iter().flatten();
            members.map(|(name, of)| (name.clone(), sample(of))).collect::<serde_json::Map<_, _>>().into()
        }
        () if is("array") => schema.get("items").map(sample).into_iter().collect(),
        () if is("integer") || is("number") => 1.into(),
        () if is("string") => "word".into(),
        () if is("boolean") => true.into(),
        () => Value::Null,
    }
}

/// The forms of real devices are recorded by tests of real processes, which know no rules.
#[test]
fn every_published_name_says_its_unit_and_is_spelled_as_all_are() {
    let published = answers::read(include_str!("../answers.json"));
    let faults = published.iter().flat_map(|(show, schema)| {
        answers::faults(&sample(schema)).into_iter().map(move |fault| format!("{show}: {fault}"))
    });
    let faults: Vec<String> = faults.collect();
    assert!(faults.is_empty(), "{faults:#?}");
}
