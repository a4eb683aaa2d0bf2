//! Measures what it costs the reader when Linux deletes a next-hop object: a million routes, of
//! which 1,000 name the object.
//!
//! `cargo run --release -p quiver-linux-mirror --features lab --example object_went`

use std::time::Instant;

use quiver_linux_mirror::lab::{Knowledge, Picture};
use quiver_netlink::request::attribute_bytes;

const ROUTES: u32 = 1_000_000;
const OF_THE_OBJECT: u32 = 1_000;
// linux/rtnetlink.h, linux/nexthop.h
const NEW_ROUTE: u16 = 24;
const DELETED_OBJECT: u16 = 105;

fn message(kind: u16, body: &[u8]) -> Vec<u8> {
    let mut message = (body.len() as u32 + 16).to_ne_bytes().to_vec();
    message.extend(kind.to_ne_bytes());
    message.resize(16, 0);
    message.extend_from_slice(body);
    message
}

fn route(number: u32) -> Vec<u8> {
    let object: u32 = if number.is_multiple_of(ROUTES / OF_THE_OBJECT) { 7 } else { 8 };
    let header = [2, 32, 0, 0, 254, 186, 0, 1, 0, 0, 0, 0];
    let destination = attribute_bytes(1, &(0x1400_0000 + number).to_be_bytes());
    let body = [&header[..], &destination, &attribute_bytes(30, &object.to_ne_bytes())].concat();
    message(NEW_ROUTE, &body)
}

fn main() {
    let mut knowledge = Knowledge::default();
    let messages: Vec<Vec<u8>> = (0..ROUTES).map(route).collect();
    let began = Instant::now();
    messages.iter().for_each(|message| knowledge.take_messages(message));
    println!(
        "{ROUTES} routes: {:.0} ns each",
        began.elapsed().as_nanos() as f64 / f64::from(ROUTES)
    );
    while knowledge.report(&mut Picture::new()) {}
    // Routes by a link are looked for in all routes, as those by an object were before.
    let began = Instant::now();
    knowledge.report_again(true, 99);
    println!("a walk over all routes: {:.3} ms", began.elapsed().as_secs_f64() * 1e3);
    let gone = [&[0; 8][..], &attribute_bytes(1, &7u32.to_ne_bytes())].concat();
    let gone = message(DELETED_OBJECT, &gone);
    let began = Instant::now();
    knowledge.take_messages(&gone);
    let took = began.elapsed();
    let mut picture = Picture::new();
    while knowledge.report(&mut picture) {}
    println!("an object goes with {OF_THE_OBJECT} of them: {:.3} ms", took.as_secs_f64() * 1e3);
}
