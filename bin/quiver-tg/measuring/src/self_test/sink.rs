//! Ports whose frames go nowhere: what is left is the cost of making them.

use std::any::Any;

use quiver_control::Registry;
use quiver_core::control::interfaces::InterfaceSpec;
use quiver_core::worker::device::{Device, TxQueue};
use quiver_core::{Context, Engine, Frame, InterfaceId};

use crate::surroundings::Surroundings;
use quiver_tg_traffic::profile::Port;

/// The surroundings.
pub(super) struct Sink;

impl Device for Sink {
    fn kind(&self) -> &'static str {
        "sink"
    }

    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}

impl TxQueue for Sink {
    fn transmit(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        frame.drain().for_each(|packet| cx.buffers.free(packet));
    }
}

impl Surroundings for Sink {
    fn register(&mut self, _: &mut Registry) {}

    fn make_port(
        &mut self,
        engine: &mut Engine,
        number: usize,
        _: &Port,
        input: &str,
    ) -> anyhow::Result<InterfaceId> {
        Ok(engine.create_interface(InterfaceSpec {
            name: format!("sink{number}"),
            device: Box::new(Sink),
            mac: [0; 6],
            mtu_bytes: 1500,
            input: input.to_owned(),
            link_up: true,
            tx: vec![Box::new(Sink)],
        })?)
    }

    fn wait(&mut self, engine: &mut Engine, at_most_ns: u64) {
        engine.turn(at_most_ns.div_ceil(1_000_000));
    }
}
