//! What rules ask for behind the addresses: ports and fields.

use crate::changes::Gone;
use crate::{Classified, Key, NONE, Rule, field};

/// What a rule asks for behind the addresses: 20 bytes.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Upper {
    pub source_from: u16,
    pub source_span: u16,
    pub destination_from: u16,
    pub destination_span: u16,
    pub value: u32,
    pub mask: u32,
    pub number: u32,
}

impl Upper {
    pub fn of<A: Classified>(rule: &Rule<A>) -> Upper {
        let rule = rule.completed();
        Upper {
            source_from: rule.source_ports.from,
            source_span: rule.source_ports.span(),
            destination_from: rule.destination_ports.from,
            destination_span: rule.destination_ports.span(),
            value: rule.value,
            mask: rule.mask,
            number: rule.number,
        }
    }

    /// Does it take a packet?
    #[inline(always)]
    pub fn takes(&self, packet: &PacketUpper) -> bool {
        let (source, destination) = (packet.source_port as u16, packet.destination_port as u16);
        let outside = (source.wrapping_sub(self.source_from) > self.source_span)
            | (destination.wrapping_sub(self.destination_from) > self.destination_span);
        let differs = (self.value ^ packet.fields) & self.mask & packet.compared;
        (differs == 0) & (!outside | (packet.ports == 0))
    }
}

/// What a packet has of that which [`Upper`] asks for, each word where that has what it is compared
/// with.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct PacketUpper {
    source_port: u32,
    destination_port: u32,
    fields: u32,
    /// The fields that are compared at all.
    compared: u32,
    /// All ones where ports count, else 0.
    pub ports: u32,
}

impl PacketUpper {
    #[inline(always)]
    pub fn of<A>(key: &Key<A>) -> PacketUpper {
        PacketUpper {
            source_port: key.source_port.into(),
            destination_port: key.destination_port.into(),
            fields: key.fields,
            compared: key.compared(),
            ports: !key.any_upper(),
        }
    }
}

/// Ports and fields of some rules, and their numbers.
#[derive(Clone)]
pub(crate) struct UpperLanes<const LANES: usize> {
    pub source_from: [u32; LANES],
    pub source_span: [u32; LANES],
    pub destination_from: [u32; LANES],
    pub destination_span: [u32; LANES],
    pub value: [u32; LANES],
    pub mask: [u32; LANES],
    pub number: [u32; LANES],
}

impl<const LANES: usize> UpperLanes<LANES> {
    /// Lanes that match nothing.
    pub const fn empty() -> Self {
        UpperLanes {
            source_from: [0; LANES],
            source_span: [0; LANES],
            destination_from: [0; LANES],
            destination_span: [0; LANES],
            value: [field::NEVER; LANES],
            mask: [field::NEVER; LANES],
            number: [NONE; LANES],
        }
    }

    pub fn set(&mut self, lane: usize, upper: &Upper) {
        self.source_from[lane] = upper.source_from.into();
        self.source_span[lane] = upper.source_span.into();
        self.destination_from[lane] = upper.destination_from.into();
        self.destination_span[lane] = upper.destination_span.into();
        self.value[lane] = upper.value;
        self.mask[lane] = upper.mask;
        self.number[lane] = upper.number;
    }

    /// Or what differs into `differs`.
    #[inline(always)]
    pub fn differ<A>(&self, key: &Key<A>, differs: &mut [u32; LANES]) {
        let (compared, counts) = (key.compared(), !key.any_upper());
        let (source, destination) = (u32::from(key.source_port), u32::from(key.destination_port));
        for (lane, differs) in differs.iter_mut().enumerate() {
            let outside =
                u32::from(source.wrapping_sub(self.source_from[lane]) > self.source_span[lane])
                    | u32::from(
                        destination.wrapping_sub(self.destination_from[lane])
                            > self.destination_span[lane],
                    );
            *differs |=
                (self.value[lane] ^ key.fields) & self.mask[lane] & compared | outside & counts;
        }
    }

    /// The number of the first rule whose lane differs in nothing.
    #[inline(always)]
    fn first(&self, differs: &[u32; LANES]) -> u32 {
        // Numbers rise from lane to lane: the smallest is the first.
        let mut least = NONE;
        for (number, differs) in self.number.iter().zip(differs) {
            least = least.min(if *differs == 0 { *number } else { NONE });
        }
        least
    }

    /// The same without the rules that are gone.
    #[inline(always)]
    pub fn first_except(&self, gone: impl Gone, differs: &mut [u32; LANES]) -> u32 {
        loop {
            let first = self.first(differs);
            if first == NONE || !gone.has(first) {
                return first;
            }
            for (number, differs) in self.number.iter().zip(differs.iter_mut()) {
                *differs |= u32::from(*number == first);
            }
        }
    }
}
