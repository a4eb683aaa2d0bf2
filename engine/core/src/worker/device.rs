//! What a driver gives to the engine: queues for workers, and a handle for the control thread.

use std::os::fd::RawFd;

use crate::graph::builtin::TxDrop;
use crate::graph::context::Context;
use crate::graph::frame::Frame;
use crate::graph::node::{Reason, ReasonText};
use crate::ids::NodeId;

/// A receive queue, owned by one worker at a time.
pub trait RxQueue: Send {
    /// Put packets that wait into `frame`, up to its room. The engine sets `rx` and counts them.
    /// Returns the node that all go to, or `None` for the usual way of their interface.
    fn receive(&mut self, cx: &mut Context<'_>, frame: &mut Frame) -> Option<NodeId>;

    /// A descriptor that is readable when packets wait, for interrupt and adaptive mode.
    fn wake_fd(&self) -> Option<RawFd> {
        None
    }

    /// Ask for (or stop asking for) wake-ups. Returns true when packets wait already, so that the
    /// worker must not sleep.
    fn arm(&mut self, interrupts: bool) -> bool {
        let _ = interrupts;
        false
    }

    /// Does it set `rx` of its packets, and count them, itself? (One queue for many interfaces.)
    fn sets_rx(&self) -> bool {
        false
    }
}

/// A transmit queue, owned by one worker.
pub trait TxQueue: Send {
    /// Send packets from the front of `frame`; what stays in it is dropped and counted as
    /// `tx ring full`. Buffers of what was copied go back to `cx.buffers`.
    fn transmit(&mut self, cx: &mut Context<'_>, frame: &mut Frame);

    /// Does it send by other interfaces, and so only say in `frame` which node each packet goes to
    /// next? Then nothing stays behind, and `NAME-tx` is a step on the way, not the end of it.
    fn passes_on(&self) -> bool {
        false
    }

    /// Does it take packets that leave it a checksum to complete, or segments to make?
    fn takes_offloads(&self) -> bool {
        false
    }

    /// Why packets die in its `NAME-tx`.
    fn reasons(&self) -> &'static [ReasonText] {
        TxDrop::ALL
    }
}

/// How a receive queue is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RxMode {
    /// Looked at in every pass; the worker never sleeps.
    Polling,
    /// Looked at when its descriptor says so.
    Interrupt,
    /// Polled while packets come, and asleep after
    /// [`ADAPTIVE_IDLE_PASSES`](crate::worker::ADAPTIVE_IDLE_PASSES) empty passes.
    Adaptive,
}

impl std::fmt::Display for RxMode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            RxMode::Polling => "polling",
            RxMode::Interrupt => "interrupt",
            RxMode::Adaptive => "adaptive",
        })
    }
}

/// The control thread's handle on a device.
pub trait Device: Send {
    /// Its kind: `memif`, `af-packet`, `tap`, …
    fn kind(&self) -> &'static str;

    /// The interface was set up or down by the operator.
    ///
    /// # Errors
    /// The device refuses; the text says why.
    fn set_admin_up(&mut self, up: bool) -> Result<(), String> {
        let _ = up;
        Ok(())
    }

    /// Take another layer 2 address.
    ///
    /// # Errors
    /// The device refuses; the text says why.
    fn set_mac(&mut self, mac: [u8; 6]) -> Result<(), String> {
        let _ = mac;
        Ok(())
    }

    /// Let frames for other addresses through, or not.
    ///
    /// # Errors
    /// The device refuses; the text says why.
    fn set_promiscuous(&mut self, on: bool) -> Result<(), String> {
        let _ = on;
        Ok(())
    }

    /// Facts for `show hardware-interfaces`, as `name: value` pairs in order.
    fn facts(&self) -> Vec<(String, serde_json::Value)> {
        Vec::new()
    }

    /// For the driver's own commands.
    fn as_any(&mut self) -> &mut dyn std::any::Any;
}
