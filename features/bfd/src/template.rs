//! The control packet that a session has sent last, from its IP header on. Without authentication
//! the next one is the same until the session changes.

use quiver_wire::bfd::Control;

use crate::datagram::{self, PACKET_BYTES_MAX};
use crate::shared::Ends;

/// A packet that is ready to be sent.
#[derive(Clone, Debug)]
pub struct Template {
    /// What it says; none: it has to be written each time.
    control: Option<Control>,
    length: usize,
    bytes: [u8; PACKET_BYTES_MAX],
}

impl Default for Template {
    fn default() -> Template {
        Template { control: None, length: 0, bytes: [0; PACKET_BYTES_MAX] }
    }
}

impl Template {
    /// Does it say this, without authentication?
    pub fn is_of(&self, control: &Control) -> bool {
        self.control.as_ref() == Some(control)
    }

    /// The packet; nothing when none can be written.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    /// Write one. `emit` writes the payload and returns its length; a signed one is for once.
    pub fn write(
        &mut self,
        control: &Control,
        ends: &Ends,
        slot: u16,
        emit: impl FnOnce(&Control, &mut [u8]) -> Option<usize>,
    ) {
        self.length = self.write_packet(control, ends, slot, emit).unwrap_or(0);
        let is_plain = self.length == plain_len(ends.local.is_ipv4());
        self.control = Some(*control).filter(|_| is_plain);
    }

    fn write_packet(
        &mut self,
        control: &Control,
        ends: &Ends,
        slot: u16,
        emit: impl FnOnce(&Control, &mut [u8]) -> Option<usize>,
    ) -> Option<usize> {
        let front = datagram::headers_len(ends.local.is_ipv4());
        let length = emit(control, self.bytes.get_mut(front..)?)?;
        let ports = (datagram::source_port(slot), datagram::destination_port(ends));
        datagram::write_headers(ends.local, ends.peer, ports, length, &mut self.bytes)
    }
}

/// Bytes of a packet without authentication.
fn plain_len(is_ip4: bool) -> usize {
    datagram::headers_len(is_ip4) + quiver_wire::bfd::CONTROL_LEN
}
