//! The screen, drawn into memory, with a router that is made up.

use std::time::Duration;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use serde_json::{Value as Json, json};

use quiver_screen::{App, Choice, News, View, draw};

use super::rates::Picture;
use super::snapshot::Snapshot;

/// What a router with two workers answers after so many seconds of even traffic.
fn answers(seconds: u64) -> Vec<Json> {
    let n = seconds;
    let worker = |index: u64, stalled: bool| {
        json!({
            "core": index + 1,
            "state": if stalled { "stalled" } else { "running" },
            "activity": "node",
            "node": if stalled { "ip4-lookup" } else { "memif-input" },
            "stalled_s": if stalled { json!(12.3) } else { Json::Null },
            "stalls": u64::from(stalled),
            "passes": n * 50_000, "sleeps": n * 3 * index,
            "node_clocks": n * 2_500_000_000,
            "idle_clocks": n * (500_000_000 + 1_500_000_000 * index),
            "internal_calls": n * 100_000, "internal_packets": n * 25_000_000,
        })
    };
    let node = |name: &str, calls: u64, packets: u64, clocks: u64| {
        json!({
            "name": name, "calls": n * calls, "vectors": n * packets, "clocks": n * clocks
        })
    };
    let nodes = json!([
        node("memif-input", 50_000, 9_900_000, 220_000_000),
        node("ethernet-input", 49_000, 9_900_000, 45_000_000),
        node("ip4-input", 49_000, 9_900_000, 52_000_000),
        node("ip4-lookup", 49_000, 9_900_000, 170_000_000),
        node("ip4-rewrite", 49_000, 9_800_000, 75_000_000),
        node("memif0/1-tx", 49_000, 9_800_000, 310_000_000),
        node("error-drop", 700, 100_000, 2_000_000),
        node("arp-input", 0, 0, 0),
    ]);
    let interface = |name: &str, state: &str, link: &str, rx: u64, tx: u64| {
        json!({"name": name, "state": state, "link": link, "counters": {
            "rx_packets": n * rx, "rx_bytes": n * rx * 60, "tx_packets": n * tx,
            "tx_bytes": n * tx * 60,
            "drops": n * (rx - tx.min(rx)), "rx_no_buffer": 0, "tx_error": n * 7,
        }})
    };
    let reason = |node: &str, reason: &str, text: &str, severity: &str, count: u64| {
        json!({
            "node": node, "reason": reason, "text": text, "severity": severity, "count": n * count
        })
    };
    vec![
        json!({"now_ns": n * 1_000_000_000, "clocks_per_s": 2.6e9,
               "workers": [worker(0, false), worker(1, n >= 10)]}),
        json!({"threads": [{"nodes": nodes.clone()}, {"nodes": nodes}]}),
        json!({"interfaces": [
            interface("memif0/0", "up", "up", 19_800_000, 0),
            interface("memif0/1", "up", "up", 0, 19_600_000),
            interface("tap0\u{1b}[2J", "down", "down", 0, 0),
            interface("größe", "up", "down", 0, 0),
        ]}),
        json!({"errors": [
            reason(
                "ip4-lookup", "no-route", "there is no route to the destination", "error", 199_000
            ),
            reason("ip4-input", "ttl-expired", "the time to live is used up", "error", 1000),
            reason("arp-input", "replied", "replies sent", "info", 2),
        ]}),
    ]
}

/// The members of a value that its published form does not have.
fn unpublished(schema: &Json, value: &Json, place: &str) -> Vec<String> {
    let members = value.as_object().into_iter().flatten().flat_map(|(name, member)| {
        let place = format!("{place}.{name}");
        match schema["properties"].get(name) {
            Some(schema) => unpublished(schema, member, &place),
            None => vec![place],
        }
    });
    let items = value.as_array().into_iter().flatten();
    members.chain(items.flat_map(|item| unpublished(&schema["items"], item, place))).collect()
}

#[test]
fn what_the_made_up_router_answers_is_what_real_ones_publish() {
    let published: Json =
        serde_json::from_str(include_str!("../../../quiverd/answers.json")).unwrap();
    for (command, answer) in super::snapshot::COMMANDS.lines().zip(answers(10)) {
        assert!(published.get(command).is_some(), "{command}");
        assert_eq!(unpublished(&published[command], &answer, command), Vec::<String>::new());
    }
}

fn snapshot(seconds: u64) -> Snapshot {
    Snapshot::read(&answers(seconds)).unwrap()
}

fn counted(seconds: u64) -> News<Snapshot> {
    News::Counted(Box::new(snapshot(seconds)))
}

/// A screen that has heard of two moments.
fn app() -> App<Picture> {
    let mut app =
        App::new("/run/quiver/api.sock".into(), Duration::from_secs(1), String::new(), true);
    app.hear(counted(1));
    app.hear(counted(2));
    app
}

fn press(app: &mut App<Picture>, keys: &str) {
    for key in keys.chars() {
        let code = match key {
            '\n' => KeyCode::Enter,
            '\t' => KeyCode::Tab,
            '\u{1b}' => KeyCode::Esc,
            key => KeyCode::Char(key),
        };
        app.press(KeyEvent::new(code, KeyModifiers::NONE));
    }
}

fn screen_of(app: &mut App<Picture>, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, app)).unwrap();
    terminal.backend().to_string()
}

#[test]
fn each_pane_is_drawn_on_80_by_24() {
    for (key, pane) in "1234".chars().zip(Picture::PANES) {
        let mut app = app();
        press(&mut app, &key.to_string());
        insta::assert_snapshot!(pane.title.to_lowercase(), screen_of(&mut app, 80, 24));
    }
}

#[test]
fn a_wide_screen_gives_names_more_room() {
    insta::assert_snapshot!("wide", screen_of(&mut app(), 120, 16));
}

#[test]
fn any_size_is_drawn_without_a_panic() {
    for (width, height) in [(1, 1), (3, 2), (20, 5), (79, 7), (300, 100)] {
        let mut app = app();
        for keys in ["1", "2", "3", "4", "?", "\u{1b}/x", "\n"] {
            press(&mut app, keys);
            screen_of(&mut app, width, height);
        }
    }
}

#[test]
fn help_stands_over_the_table_and_any_key_ends_it() {
    let mut app = app();
    press(&mut app, "?");
    insta::assert_snapshot!("help", screen_of(&mut app, 80, 24));
    press(&mut app, "x");
    assert!(!app.shows_help && !app.quits);
    press(&mut app, "?q");
    assert!(app.quits);
}

#[test]
fn a_worker_that_stalls_is_told_on_every_pane() {
    let mut app = app();
    app.hear(counted(10));
    let screen = screen_of(&mut app, 80, 24);
    assert!(screen.contains("worker 1 STALLS for 12 s in node ip4-lookup"), "{screen}");
    press(&mut app, "3");
    insta::assert_snapshot!("stalled", screen_of(&mut app, 80, 24));
}

#[test]
fn a_router_that_is_gone_is_said_and_counted_anew_when_it_is_back() {
    let mut app = app();
    app.hear(News::Lost(
        "cannot reach the router at /run/quiver/api.sock: nobody listens there".into(),
    ));
    insta::assert_snapshot!("gone", screen_of(&mut app, 80, 24));
    // A new router has counted less.
    app.hear(counted(1));
    assert!(screen_of(&mut app, 80, 24).contains("was gone and is there again"));
    app.hear(counted(2));
    let picture = app.picture.as_ref().unwrap();
    assert_eq!(picture.total.rx_pps, 19_800_000.0);
}

#[test]
fn a_filter_is_typed_kept_and_cleared() {
    let mut app = app();
    press(&mut app, "/IP4\n");
    let screen = screen_of(&mut app, 80, 24);
    assert!(screen.contains("ip4-lookup") && !screen.contains("ethernet-input"), "{screen}");
    // Keys that are commands elsewhere are letters in a filter.
    press(&mut app, "/q");
    assert!(!app.quits);
    assert!(screen_of(&mut app, 80, 24).contains("nothing fits the filter"));
    press(&mut app, "\u{1b}");
    assert!(screen_of(&mut app, 80, 24).contains("ethernet-input"));
}

/// The first words of the rows of the table.
fn names(app: &mut App<Picture>) -> Vec<String> {
    let screen = screen_of(app, 80, 24);
    let lines = screen.lines().skip(5).map(|line| line.trim_matches('"').trim_end().to_owned());
    let rows = lines.take_while(|line| !line.is_empty());
    rows.filter_map(|line| line.split_whitespace().next().map(str::to_owned)).collect()
}

#[test]
fn rows_are_sorted_by_the_column_asked_for() {
    let mut app = app();
    assert_eq!(names(&mut app)[..2], ["memif0/1-tx", "memif-input"]);
    press(&mut app, "r");
    assert_eq!(names(&mut app)[0], "error-drop");
    press(&mut app, "s"); // behind the last column comes the first
    assert_eq!(names(&mut app)[0], "error-drop");
    assert_eq!(names(&mut app)[1], "ethernet-input");
    // Each pane keeps its own order.
    press(&mut app, "21");
    assert_eq!(app.order(), (0, false));
    press(&mut app, "a");
    assert_eq!(names(&mut app)[0], "arp-input");
}

#[test]
fn a_paused_picture_stands_still() {
    let mut app = app();
    press(&mut app, "p");
    let before = screen_of(&mut app, 80, 24);
    assert!(before.contains("PAUSED"));
    app.hear(counted(10));
    assert_eq!(screen_of(&mut app, 80, 24), before);
    press(&mut app, " ");
    app.hear(counted(11));
    assert_ne!(screen_of(&mut app, 80, 24), before);
}

#[test]
fn the_interval_goes_in_steps_and_stops_at_its_ends() {
    let mut app = app();
    press(&mut app, "+");
    assert_eq!(app.interval, Duration::from_secs(2));
    press(&mut app, "---------");
    assert_eq!(app.interval, Duration::from_millis(200));
    press(&mut app, "++++++++++++");
    assert_eq!(app.interval, Duration::from_secs(30));
}

#[test]
fn nodes_are_shown_of_all_workers_or_of_one() {
    let mut app = app();
    press(&mut app, "ww");
    assert_eq!(app.choice.part, Some(1));
    assert!(screen_of(&mut app, 80, 24).contains("  worker 1"));
    press(&mut app, "w");
    assert_eq!(app.choice.part, None);
}

#[test]
fn scrolling_stops_at_the_last_row() {
    let mut app = app();
    press(&mut app, "jjjjjjjjjjjj");
    screen_of(&mut app, 80, 12);
    assert_eq!(app.top_row, 1, "seven rows, six places");
    press(&mut app, "kk");
    assert_eq!(app.top_row, 0);
}

#[test]
fn a_terminal_without_utf8_and_color_shows_it_too() {
    let mut app = app();
    app.utf8 = false;
    press(&mut app, "2");
    let screen = screen_of(&mut app, 80, 24);
    assert!(screen.is_ascii(), "{screen}");
    assert!(screen.contains("gr??e") && screen.contains("tap0?[2J"), "{screen}");
}

#[test]
fn without_a_terminal_the_same_tables_are_text() {
    let picture = Picture::between(&snapshot(1), &snapshot(2)).unwrap();
    insta::assert_snapshot!("text", quiver_screen::text(&picture, &Choice::default(), true));
    let stalled = Picture::between(&snapshot(1), &snapshot(10)).unwrap();
    assert!(
        quiver_screen::text(&stalled, &Choice::default(), true)
            .contains("worker 1 STALLS for 12 s in node ip4-lookup")
    );
    let as_json = json!(picture);
    assert_eq!(as_json["interfaces"][2]["name"], "memif0/1");
    assert_eq!(as_json["interfaces"][2]["tx_pps"], 19_600_000.0);
}

#[test]
fn answers_of_something_else_make_no_snapshot() {
    assert_eq!(Snapshot::read(&[]), None);
    assert_eq!(Snapshot::read(&[json!({}), json!([]), json!(null), json!("x")]), None);
}
