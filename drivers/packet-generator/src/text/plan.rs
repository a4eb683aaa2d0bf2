//! From a description to packets: sizes, lengths, checksums, and what changes between packets.

use std::net::{Ipv4Addr, Ipv6Addr};

use quiver_wire::IpProtocol;
use quiver_wire::checksum::{self, Sum};

use super::layers::{Fix, Ip, Upper};
use super::{Description, Field, TextError};
use crate::edit::{ChecksumField, Edit, Order};
use crate::template::{PACKET_BYTES_MAX, STREAM_BYTES_MAX};

/// Packets that are made beforehand at most when fields go through their values; with more, the
/// fields are written when the packet is sent.
pub const VARIANTS_MAX: u64 = 1024;

/// What a stream sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The packets, to be sent in turn.
    pub packets: Vec<Vec<u8>>,
    /// Fields that are written into each.
    pub edits: Vec<Edit>,
}

impl Description {
    /// Make packets, of the size that the description has or of each size from the first to the
    /// second of `sizes`. Longer sizes are padded, shorter ones cut.
    ///
    /// # Errors
    /// The sizes do not fit the description.
    pub fn plan(&self, sizes: Option<(u64, u64)>) -> Result<Plan, TextError> {
        let natural = (self.headers.len() + self.payload.bytes()) as u64;
        let (low, high) = sizes.unwrap_or((natural, natural));
        if low == 0 || low > high || high > PACKET_BYTES_MAX as u64 {
            let what = format!(
                "a packet of {low} to {high} bytes cannot be: 1 to {PACKET_BYTES_MAX} are possible"
            );
            return Err(TextError::Whole(what));
        }
        let size_count = high - low + 1;
        let in_turn = self.fields.iter().filter(|f| f.order == Order::Increment);
        let period = in_turn.map(|f| f.count).try_fold(size_count, least_common_multiple);
        let variants = period.filter(|p| *p <= VARIANTS_MAX);
        let count = variants.unwrap_or(size_count);
        if count.saturating_mul(high) > STREAM_BYTES_MAX as u64 {
            let what = format!("{count} sizes take more than {} MiB", STREAM_BYTES_MAX >> 20);
            return Err(TextError::Whole(what));
        }
        let packets = (0..count).map(|number| {
            let size = (low + number % size_count) as usize;
            self.packet(size, variants.map(|_| number))
        });
        let packets = packets.collect();
        let stays = |f: &&Field| variants.is_none() || f.order == Order::Random;
        let edits = self.fields.iter().filter(stays).map(|f| self.edit(f)).collect();
        Ok(Plan { packets, edits })
    }

    /// One packet; with the values that the fields have in packet `number`, or their lowest.
    fn packet(&self, size: usize, number: Option<u64>) -> Vec<u8> {
        let mut bytes = self.headers.clone();
        let payload_at = bytes.len();
        bytes.extend((payload_at..size).map(|i| self.payload.at(i - payload_at)));
        for field in self.fields.iter().filter(|f| f.order == Order::Increment) {
            let value = field.low + u128::from(number.unwrap_or(0) % field.count);
            bytes[field.offset..field.offset + field.width]
                .copy_from_slice(&value.to_be_bytes()[16 - field.width..]);
        }
        for fix in &self.fixes {
            fix.write_length(&mut bytes, size);
        }
        // From the innermost out: an outer checksum may cover an inner one.
        for fix in self.fixes.iter().rev() {
            fix.write_checksum(&mut bytes);
        }
        bytes.truncate(size);
        bytes
    }

    fn edit(&self, field: &Field) -> Edit {
        let checksums = self.fixes.iter().filter_map(|fix| fix.covers(field));
        Edit {
            offset: field.offset as u16,
            width: field.width as u8,
            low: field.low,
            count: field.count,
            order: field.order,
            checksums: checksums.collect(),
        }
    }
}

fn put(bytes: &mut [u8], at: usize, value: usize) {
    bytes[at..at + 2].copy_from_slice(&(value.min(65_535) as u16).to_be_bytes());
}

impl Fix {
    fn write_length(&self, bytes: &mut [u8], size: usize) {
        match *self {
            Fix::Ip4 { start, length: true, .. } => {
                put(bytes, start + 2, size.saturating_sub(start))
            }
            Fix::Ip6 { start, length: true } => {
                put(bytes, start + 4, size.saturating_sub(start + 40))
            }
            Fix::Upper { start, length: true, .. } => {
                put(bytes, start + 4, size.saturating_sub(start))
            }
            _ => {}
        }
    }

    fn write_checksum(&self, bytes: &mut [u8]) {
        match *self {
            Fix::Ip4 { start, checksum: true, .. } => {
                let sum = checksum::of(&bytes[start..start + 20]);
                put(bytes, start + 10, usize::from(sum));
            }
            Fix::Upper { start, kind, ip, checksum: true, .. } => {
                let sum = ip
                    .map_or(Sum::new(), |ip| ip.pseudo_header(bytes, kind, start))
                    .bytes(&bytes[start..]);
                let sum = if kind == Upper::Udp { sum.udp_checksum() } else { sum.checksum() };
                put(bytes, start + kind.checksum_at(), usize::from(sum));
            }
            _ => {}
        }
    }

    /// The checksum of this header when it covers `field`.
    fn covers(&self, field: &Field) -> Option<ChecksumField> {
        let within = |start: usize, bytes: usize| (start..start + bytes).contains(&field.offset);
        match *self {
            Fix::Ip4 { start, checksum: true, .. } if within(start, 20) => {
                Some(ChecksumField { offset: start as u16 + 10, is_udp: false })
            }
            Fix::Upper { start, kind, ip, checksum: true, .. } => {
                let pseudo =
                    |ip: Ip| kind != Upper::Icmp4 && ip.addresses().contains(&field.offset);
                (field.offset >= start || ip.is_some_and(pseudo)).then_some(ChecksumField {
                    offset: (start + kind.checksum_at()) as u16,
                    is_udp: kind == Upper::Udp,
                })
            }
            _ => None,
        }
    }
}

impl Ip {
    /// Where its addresses lie in the packet.
    fn addresses(&self) -> std::ops::Range<usize> {
        if self.is_ip6 { self.start + 8..self.start + 40 } else { self.start + 12..self.start + 20 }
    }

    fn pseudo_header(&self, bytes: &[u8], kind: Upper, upper_start: usize) -> Sum {
        let length = bytes.len() - upper_start;
        let addresses = &bytes[self.addresses()];
        match (kind, self.is_ip6) {
            (Upper::Icmp4, _) => Sum::new(),
            (_, false) => {
                let address = |at: usize| {
                    Ipv4Addr::new(
                        addresses[at],
                        addresses[at + 1],
                        addresses[at + 2],
                        addresses[at + 3],
                    )
                };
                Sum::pseudo4(address(0), address(4), kind.protocol(), length as u16)
            }
            (_, true) => {
                let address = |at: usize| {
                    let mut octets = [0; 16];
                    octets.copy_from_slice(&addresses[at..at + 16]);
                    Ipv6Addr::from(octets)
                };
                Sum::pseudo6(address(0), address(16), kind.protocol(), length as u32)
            }
        }
    }
}

impl Upper {
    fn protocol(self) -> IpProtocol {
        match self {
            Upper::Udp => IpProtocol::UDP,
            Upper::Tcp => IpProtocol::TCP,
            Upper::Icmp4 => IpProtocol::ICMP,
            Upper::Icmp6 => IpProtocol::ICMP6,
        }
    }
}

/// Of two counts; `None` when it is too large for a number.
fn least_common_multiple(a: u64, b: u64) -> Option<u64> {
    let (mut x, mut y) = (a, b);
    while y != 0 {
        (x, y) = (y, x % y);
    }
    (a / x).checked_mul(b)
}
