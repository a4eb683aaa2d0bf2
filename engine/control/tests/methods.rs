//! Commands as methods of the API, and its description of itself.

use std::io::BufReader;
use std::os::unix::net::UnixStream;

use quiver_control::*;
use serde_json::{Value, json};

use crate::server::{Running, call};

#[test]
fn a_command_is_a_method_whose_result_is_its_json() {
    let running = Running::start("methods", Limits::default());
    let mut api = running.api();
    let up = json!({"interface": "e0", "state": "up"});
    let done = call(&mut api, 1, "set_interface_state", up);
    assert_eq!(done["result"], Value::Null, "{done}");
    let shown = call(&mut api, 2, "show_interface", json!({"interface": "e0"}))["result"].clone();
    assert_eq!(
        shown,
        call(&mut api, 3, "cli", json!({"line": "show interface e0"}))["result"]["json"]
    );
    // A long answer is one message all the same.
    let long = call(&mut api, 4, "show_numbers", json!({"count": 1500}));
    assert_eq!(long["result"].as_array().map(Vec::len), Some(1500));
    let unknown = call(&mut api, 5, "show_lamps", json!({}));
    assert_eq!(unknown["error"]["code"], -32601);
    let wrong = call(&mut api, 6, "set_interface_state", json!({"interface": "e0"}));
    assert_eq!(wrong["error"]["code"], -32000, "{wrong}");
}

/// The parameters that set a state, if the configuration is what was read.
fn set(state: &str, generation: &Value) -> Value {
    json!({"interface": "e0", "state": state, "if_generation": generation})
}

#[test]
fn of_two_writers_the_one_who_read_an_older_state_is_refused() {
    let running = Running::start("generations", Limits::default());
    let (mut one, mut other) = (running.api(), running.api());
    let read = |api: &mut BufReader<UnixStream>| {
        call(api, 1, "generation", json!({}))["result"]["generation"].clone()
    };
    let (of_one, of_other) = (read(&mut one), read(&mut other));
    assert_eq!(of_one, of_other);
    let done = call(&mut one, 2, "set_interface_state", set("up", &of_one));
    assert!(done.get("error").is_none(), "{done}");
    for (method, params) in [
        ("set_interface_state", set("down", &of_other)),
        ("cli", json!({"line": "set interface state e0 down", "if_generation": of_other})),
    ] {
        let refused = call(&mut other, 3, method, params);
        assert_eq!(refused["error"]["code"], -32001, "{refused}");
    }
    let again = read(&mut other);
    let done = call(&mut other, 4, "set_interface_state", set("down", &again));
    assert!(done.get("error").is_none(), "{done}");
}

#[test]
fn the_api_describes_itself() {
    let running = Running::start("discover", Limits::default());
    let document = call(&mut running.api(), 1, "rpc.discover", json!({}))["result"].clone();
    let methods = document["methods"].as_array().unwrap();
    let mut names: Vec<&str> =
        methods.iter().filter_map(|method| method["name"].as_str()).collect();
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all, "each name is one method");
    assert!(
        ["cli", "rpc.discover", "show_interface", "ping"].iter().all(|name| names.contains(name))
    );
}
