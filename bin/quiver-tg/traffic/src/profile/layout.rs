//! Layout of a stream's frames: constant bytes, fields that vary, and the lengths and checksums
//! that follow from them.

use std::net::Ipv6Addr;

use super::field::Field;
use super::header::{self, Default, FieldSpec, HeaderSpec, Role};
use super::layers::{Layer, Layers};
use super::scalar::Kind;
use super::sizes::FRAME_BYTES_MIN;

/// The type of frames whose payload is nothing known (IEEE 802: local experimental 1).
pub const ETHER_TYPE_PLAIN: u16 = 0x88b5;
/// The protocol number of an IP packet with an unknown payload (RFC 3692: use for experimentation).
pub const PROTOCOL_PLAIN: u8 = 253;
/// The port of VXLAN (RFC 7348 §5).
const VXLAN_PORT: u128 = 4789;
/// The port of a UDP header that says none.
const PORT_DEFAULT: u128 = 1024;
/// An extension header without options holds eight bytes all the same (PadN, RFC 8200 §4.2).
const PAD_6: [u8; 6] = [1, 4, 0, 0, 0, 0];

/// Addresses of the ports at both ends, for headers that give none.
#[derive(Clone, Copy, Debug, Default)]
pub struct PortAddresses {
    /// The sending port's MAC address.
    pub own_mac: u128,
    /// Its gateway's; `None` when it is not known (yet).
    pub gateway_mac: Option<u128>,
    /// The other port's.
    pub peer_mac: u128,
    /// The sending port's first IPv4 address.
    pub own_ip4: Option<u128>,
    /// Its first IPv6 address.
    pub own_ip6: Option<u128>,
    /// The other port's first IPv4 address.
    pub peer_ip4: Option<u128>,
    /// Its first IPv6 address.
    pub peer_ip6: Option<u128>,
}

/// A field that varies.
#[derive(Clone, Debug)]
pub struct Part {
    /// Its first bit from the start of the frame.
    pub bit: usize,
    /// Its width.
    pub bits: usize,
    /// How its values are written.
    pub kind: Kind,
    /// Its values.
    pub field: Field,
    /// `header.field`, for messages.
    pub name: String,
}

/// A field that holds the bytes from `start` to the end of the frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Length {
    /// Its first bit from the start of the frame.
    pub bit: usize,
    /// From where it counts, bytes from the start of the frame.
    pub start: usize,
}

/// A checksum to keep right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checksum {
    /// Its first byte from the start of the frame.
    pub at: usize,
    /// The first byte under it.
    pub start: usize,
    /// The end of what is under it; `None`: the frame's end.
    pub end: Option<usize>,
    /// The IP header whose addresses are under it as well.
    pub pseudo: Option<Pseudo>,
    /// Zero is written as 0xffff (RFC 768).
    pub zero_is_ffff: bool,
}

/// Pseudo header: the parts of an IP header under a checksum (RFC 9293 §3.1, RFC 8200 §8.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pseudo {
    /// Where the IP header begins.
    pub ip: usize,
    /// Its source address: first byte.
    pub source: usize,
    /// Its destination address: first byte.
    pub destination: usize,
    /// Bytes of an address.
    pub address_bytes: usize,
    /// The last segment, where the header's destination is only the next one.
    pub last_segment: Option<Ipv6Addr>,
    /// The protocol in it.
    pub protocol: u8,
}

/// The layout of a stream's frames.
#[derive(Clone, Debug, Default)]
pub struct Layout {
    /// All headers; what varies is zero.
    pub bytes: Vec<u8>,
    /// Fields that vary, from the outside in.
    pub parts: Vec<Part>,
    /// Lengths.
    pub lengths: Vec<Length>,
    /// Checksums, the innermost first.
    pub checksums: Vec<Checksum>,
}

/// Fill in what the ports at both ends give.
///
/// # Errors
/// When neither headers nor ports give an address that is needed; the message says which.
pub fn complete(layers: &Layers, ends: &PortAddresses) -> Result<Layers, String> {
    let mut layers = layers.clone();
    if !layers.0.first().is_some_and(|layer| layer.spec.is(&header::ETHERNET)) {
        layers.0.insert(0, Layer::new(&header::ETHERNET));
    }
    for place in 0..layers.0.len() {
        let next_segment = layers
            .0
            .get(place + 1)
            .and_then(|next| next.segments().first().map(|first| first.to_bits()));
        let layer = &mut layers.0[place];
        if layer.spec.tail.is_some_and(|(name, _)| name == "options")
            && layer.spec.bytes == 2
            && layer.tail.is_empty()
        {
            layer.tail.extend(PAD_6);
        }
        let spec = layer.spec;
        for field in spec.fields {
            let Default::Derived(role) = field.default else { continue };
            if layer.field(field.name).is_some() {
                continue;
            }
            let found = match (role, field.kind) {
                (Role::OwnMac, _) => Some(ends.own_mac),
                (Role::GatewayMac, _) if place == 0 => ends.gateway_mac,
                (Role::GatewayMac, _) => Some(ends.peer_mac),
                (Role::OwnAddress, Kind::Ip6) => ends.own_ip6,
                (Role::OwnAddress, _) => ends.own_ip4,
                (Role::PeerAddress, Kind::Ip6) => next_segment.or(ends.peer_ip6),
                (Role::PeerAddress, _) => ends.peer_ip4,
                _ => continue,
            };
            let value = found.ok_or_else(|| missing(spec, field, role))?;
            layer.set_default(field.name, value);
        }
    }
    Ok(layers)
}

fn missing(spec: &HeaderSpec, field: &FieldSpec, role: Role) -> String {
    let name = format!("{}.{} is missing", spec.name, field.name);
    match role {
        Role::GatewayMac => format!(
            "{name}; give it here, or `gateway_mac` or `gateway` (an address to ask for) at the \
             sending port"
        ),
        Role::OwnAddress => {
            format!("{name}; give it here, or the sending port an address (`ip4`, `ip6`)")
        }
        _ => format!(
            "{name}; give it here, or the port where the frames go an address (`ip4`, `ip6`)"
        ),
    }
}

/// Lay out headers that are [`complete`].
///
/// # Errors
/// When a value does not fit its field, or headers cannot follow one another.
pub fn lay_out(layers: &Layers) -> Result<Layout, String> {
    let mut layout = Layout::default();
    let mut start = 0;
    for place in 0..layers.0.len() {
        let layer = &layers.0[place];
        layout.bytes.resize(start + layer.bytes(), 0);
        let tail = layout.bytes.len() - layer.tail.len();
        layout.bytes[tail..].copy_from_slice(&layer.tail);
        for field in layer.spec.fields {
            layout.lay_field(&layers.0, place, start, field)?;
        }
        start += layer.bytes();
    }
    layout.checksums.reverse();
    Ok(layout)
}

impl Layout {
    fn lay_field(
        &mut self,
        layers: &[Layer],
        place: usize,
        start: usize,
        field: &FieldSpec,
    ) -> Result<(), String> {
        let layer = &layers[place];
        let name = || format!("{}.{}", layer.spec.name, field.name);
        let bit = start * 8 + field.bit;
        if bit + field.bits > self.bytes.len() * 8 {
            return Ok(()); // a key that is not there
        }
        if let Some(said) = layer.field(field.name) {
            match said.constant() {
                Some(value) => set_bits(&mut self.bytes, bit, field.bits, value),
                None => {
                    let part = Part {
                        bit,
                        bits: field.bits,
                        kind: field.kind,
                        field: said.clone(),
                        name: name(),
                    };
                    self.parts.push(part);
                }
            }
            return Ok(());
        }
        let value = match field.default {
            Default::Value(value) => value,
            Default::Required => return Err(format!("{} is missing", name())),
            Default::Derived(role) => match self.derive(layers, place, start, bit, role)? {
                Some(value) => value,
                None => return Ok(()),
            },
        };
        if value > super::scalar::greatest(field.bits) {
            return Err(format!("{} bytes are too many for {}", layer.bytes(), name()));
        }
        set_bits(&mut self.bytes, bit, field.bits, value);
        Ok(())
    }

    /// The value of a derived field; `None` when it is recorded and computed later.
    fn derive(
        &mut self,
        layers: &[Layer],
        place: usize,
        start: usize,
        bit: usize,
        role: Role,
    ) -> Result<Option<u128>, String> {
        let layer = &layers[place];
        let next = layers.get(place + 1);
        let is_next = |spec: &HeaderSpec| next.is_some_and(|layer| layer.spec.is(spec));
        let checksum =
            |end, pseudo, zero_is_ffff| Checksum { at: bit / 8, start, end, pseudo, zero_is_ffff };
        Ok(match role {
            Role::NextEtherType => Some(u128::from(next_ether_type(layer, next)?)),
            Role::NextProtocol => Some(u128::from(next_protocol(layer, next)?)),
            Role::Length(behind) => {
                self.lengths.push(Length { bit, start: start + behind });
                None
            }
            Role::HeaderWords => Some(layer.bytes() as u128 / 4),
            Role::ExtensionUnits => Some(layer.bytes() as u128 / 8 - 1),
            Role::HeaderChecksum => {
                self.checksums.push(checksum(Some(start + layer.bytes()), None, false));
                None
            }
            Role::Checksum => {
                self.checksums.push(checksum(None, None, false));
                None
            }
            Role::PseudoChecksum => {
                self.checksums.push(checksum(None, Some(pseudo(layers, place)?), false));
                None
            }
            Role::UdpChecksum if is_next(&header::VXLAN) => Some(0),
            Role::UdpChecksum => {
                self.checksums.push(checksum(None, Some(pseudo(layers, place)?), true));
                None
            }
            Role::BottomOfStack => Some(u128::from(!is_next(layer.spec))),
            Role::TunnelPort => {
                Some(if is_next(&header::VXLAN) { VXLAN_PORT } else { PORT_DEFAULT })
            }
            Role::LastSegment => Some((layer.tail.len() as u128 / 16).saturating_sub(1)),
            Role::KeyPresent => Some(u128::from(layer.bytes() > layer.spec.bytes)),
            // Filled in by `complete`.
            Role::OwnMac | Role::GatewayMac | Role::OwnAddress | Role::PeerAddress => Some(0),
        })
    }

    /// The smallest frame that holds the headers and a stamp.
    pub fn frame_bytes_min(&self, stamp_bytes: usize) -> usize {
        (self.bytes.len() + stamp_bytes).max(FRAME_BYTES_MIN)
    }
}

fn next_ether_type(layer: &Layer, next: Option<&Layer>) -> Result<u16, String> {
    match next {
        None => Ok(ETHER_TYPE_PLAIN),
        Some(next) if next.spec.is(&header::RAW) => Ok(ETHER_TYPE_PLAIN),
        Some(next) => next.spec.ether_type.ok_or_else(|| cannot_follow(layer, next, "ip4 or ip6")),
    }
}

fn next_protocol(layer: &Layer, next: Option<&Layer>) -> Result<u8, String> {
    match next {
        None => Ok(PROTOCOL_PLAIN),
        Some(next) if next.spec.is(&header::RAW) => Ok(PROTOCOL_PLAIN),
        Some(next) => next.spec.protocol.ok_or_else(|| cannot_follow(layer, next, "gre or udp")),
    }
}

fn cannot_follow(layer: &Layer, next: &Layer, between: &str) -> String {
    let (before, behind) = (layer.spec.name, next.spec.name);
    format!(
        "{behind} cannot follow {before}: {behind} needs {between} below it, or the type in \
         {before} said"
    )
}

/// The IP header that a checksum at `place` takes its addresses from.
fn pseudo(layers: &[Layer], place: usize) -> Result<Pseudo, String> {
    let layer = &layers[place];
    let is_ip = |layer: &Layer| layer.spec.is(&header::IP4) || layer.spec.is(&header::IP6);
    let below = layers[..place].iter().rposition(is_ip);
    let below = below.ok_or_else(|| format!("{} needs ip4 or ip6 below it", layer.spec.name))?;
    let ip: usize = layers[..below].iter().map(Layer::bytes).sum();
    let segments = layers[below..place].iter().find(|layer| layer.spec.is(&header::SRH));
    let (source, destination, address_bytes) =
        if layers[below].spec.is(&header::IP4) { (12, 16, 4) } else { (8, 24, 16) };
    Ok(Pseudo {
        ip,
        source: ip + source,
        destination: ip + destination,
        address_bytes,
        last_segment: segments.and_then(|srh| srh.segments().last().copied()),
        protocol: layer.spec.protocol.unwrap_or(PROTOCOL_PLAIN),
    })
}

/// Write a value into bits; the first one is the highest of the first byte.
pub fn set_bits(bytes: &mut [u8], bit: usize, bits: usize, value: u128) {
    for place in 0..bits {
        let at = bit + place;
        let is_set = value >> (bits - 1 - place) & 1 == 1;
        if let Some(byte) = bytes.get_mut(at / 8) {
            let mask = 0x80 >> (at % 8);
            *byte = if is_set { *byte | mask } else { *byte & !mask };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_counted_as_in_the_figures_of_rfcs() {
        let mut bytes = [0; 4];
        set_bits(&mut bytes, 4, 12, 0xabc);
        assert_eq!(bytes, [0x0a, 0xbc, 0, 0]);
        set_bits(&mut bytes, 31, 1, 1);
        set_bits(&mut bytes, 4, 4, 0);
        assert_eq!(bytes, [0, 0xbc, 0, 1]);
    }
}
