//! The interface `pgN`: what is sent on it is counted and freed; what comes in is what streams
//! make.

use std::any::Any;

use quiver_core::control::interfaces::{InterfaceError, InterfaceSpec};
use quiver_core::worker::device::{Device, TxQueue};
use quiver_core::{Context, Engine, Frame, InterfaceId};

/// MTU of a new interface, bytes.
pub const MTU_BYTES: u32 = 9000;
/// Highest number of an interface.
pub const INSTANCE_MAX: u32 = 65_535;

/// Counted already by `pgN-output`; here packets only end.
struct Sink;

impl TxQueue for Sink {
    fn transmit(&mut self, cx: &mut Context<'_>, frame: &mut Frame) {
        for packet in frame.drain() {
            cx.buffers.free(packet);
        }
    }
}

/// The control thread's handle.
pub(crate) struct GeneratorDevice;

impl Device for GeneratorDevice {
    fn kind(&self) -> &'static str {
        "packet-generator"
    }

    fn set_mac(&mut self, _mac: [u8; 6]) -> Result<(), String> {
        Ok(())
    }

    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}

/// Make the interface `pg<instance>`. Received packets go to `ethernet-input`.
///
/// # Errors
/// The name is taken, there are too many interfaces, or a worker does not answer.
pub fn create_interface(engine: &mut Engine, instance: u32) -> Result<InterfaceId, InterfaceError> {
    let name = format!("pg{instance}");
    if instance > INSTANCE_MAX {
        return Err(InterfaceError::BadName(name));
    }
    let tx = (0..engine.worker_count()).map(|_| Box::new(Sink) as Box<dyn TxQueue>).collect();
    let [.., high, low] = instance.to_be_bytes();
    engine.create_interface(InterfaceSpec {
        name,
        device: Box::new(GeneratorDevice),
        mac: [0x02, 0xfe, 0x00, 0x67, high, low],
        mtu_bytes: MTU_BYTES,
        input: "ethernet-input".into(),
        link_up: true,
        tx,
    })
}
