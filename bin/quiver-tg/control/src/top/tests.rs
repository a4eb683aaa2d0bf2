//! The screen, drawn into memory, with a generator that is made up.

use std::time::Duration;

use quiver_screen::{App, Choice, News, View, draw, text};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use serde_json::{Value as Json, json};

use super::Picture;

/// After so many seconds of even traffic, of which a tenth of stream 0 is lost.
fn statistics(seconds: u64) -> Json {
    let n = seconds;
    let stream = |number: u64, sent: u64, received: u64| {
        json!({"stream": number, "from": number, "to": 1 - number, "rate_pps": sent,
               "is_paused": false,
               "sent": n * sent, "received": n * received, "missing": n * (sent - received),
               "latency_ns": {"count": 100, "p50": 4_607, "p99": 18_431, "max": 30_000}})
    };
    let port = |number: u64| {
        json!({"port": number, "name": format!("memif{}/{number}", 1),
               "link": if n < 9 { "up" } else { "down" },
               "tx_frames": n * 1_000_000, "tx_bytes": n * 64_000_000, "tx_refused": 0,
               "rx_frames": n * 950_000, "rx_bytes": n * 60_800_000})
    };
    json!({"state": "sending", "measurement": 3, "now_ns": n * 1_000_000_000, "elapsed_s": n,
           "duration_s": 60,
           "streams": [stream(0, 1_000_000, 900_000), stream(1, 1_000_000, 1_000_000)],
           "ports": [port(0), port(1)]})
}

/// Transactions after so many seconds, of which a tenth fails for want of an answer.
fn transactions(seconds: u64) -> Json {
    let n = seconds;
    let side = |begun: u64, good: u64| {
        json!({"transactions": {"attempted": n * begun, "connected": n * good,
                                "successful": n * good - 10,
                                "failed": n * (begun - good), "open": 10,
                                "failures": {"timeout": n * (begun - good), "reset": 0}},
               "packets": {"tx_packets": n * 400_000, "rx_packets": n * 300_000,
                   "retransmitted": n * 3}})
    };
    let mut seen = statistics(seconds);
    seen["streams"] = json!([]);
    seen["transactions"] = json!({"kind": "tcp", "rate_cps": 100_000, "is_paused": false,
                                  "clients": side(100_000, 90_000),
                                  "servers": side(90_000, 90_000)});
    seen
}

fn app() -> App<Picture> {
    let mut app =
        App::new("/run/quiver/tg.sock".into(), Duration::from_secs(1), String::new(), true);
    (1..=6).for_each(|second| {
        app.hear(News::Counted(Box::new(statistics(second))));
    });
    app
}

fn screen_of(app: &mut App<Picture>, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a terminal");
    terminal.draw(|frame| draw(frame, app)).expect("a picture");
    terminal.backend().to_string()
}

#[test]
fn streams_and_ports_are_drawn_on_80_by_24_with_a_plot() {
    let mut app = app();
    insta::assert_snapshot!("streams", screen_of(&mut app, 80, 24));
    app.press(KeyEvent::new(KeyCode::Char('2'), KeyModifiers::NONE));
    insta::assert_snapshot!("ports", screen_of(&mut app, 80, 24));
}

#[test]
fn transactions_have_a_pane_of_their_own_in_the_place_of_streams() {
    let mut app =
        App::new("/run/quiver/tg.sock".into(), Duration::from_secs(1), String::new(), true);
    (1..=4).for_each(|second| {
        app.hear(News::Counted(Box::new(transactions(second))));
    });
    insta::assert_snapshot!("transactions", screen_of(&mut app, 80, 24));
    let picture = Picture::between(&transactions(1), &transactions(3)).expect("a picture");
    insta::assert_snapshot!("transactions_text", text(&picture, &Choice::default(), true));
}

#[test]
fn any_size_is_drawn_without_a_panic() {
    for (width, height) in [(1, 1), (3, 2), (20, 5), (79, 7), (40, 23), (300, 100)] {
        screen_of(&mut app(), width, height);
    }
}

#[test]
fn a_port_without_a_link_is_said() {
    let mut app = app();
    app.hear(News::Counted(Box::new(statistics(10))));
    assert!(screen_of(&mut app, 80, 24).contains("no link: memif1/0, memif1/1"));
}

#[test]
fn without_a_terminal_the_same_tables_are_text() {
    let picture = Picture::between(&statistics(1), &statistics(3)).expect("a picture");
    assert_eq!(picture.streams[0].received_pps, 900_000.0);
    assert_eq!(picture.ports[1].rx_bps, 8.0 * 60_800_000.0);
    insta::assert_snapshot!("text", text(&picture, &Choice::default(), true));
}

#[test]
fn answers_of_something_else_make_no_picture() {
    assert_eq!(Picture::between(&json!({}), &json!([])), None);
    assert_eq!(Picture::between(&json!(null), &json!({"now_ns": "x"})), None);
}

#[test]
fn columns_fit_into_80_characters() {
    for pane in Picture::PANES {
        let width: u16 = pane.columns.iter().map(|column| column.width).sum();
        assert!(width <= 80, "{}: {width}", pane.title);
    }
}
