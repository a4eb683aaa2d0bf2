//! What tells this machine apart from others.

use std::hash::{DefaultHasher, Hash, Hasher};

/// The file that tells machines apart.
const MACHINE_ID: &str = "/etc/machine-id";

/// A unicast, locally administered Ethernet address that nobody else is likely to have (RFC 9542
/// §2.1). It is the same for this device on this machine each time, so that neighbours need not
/// learn it anew.
pub fn address_of(device: impl Hash) -> [u8; 6] {
    let mut hasher = DefaultHasher::new();
    std::fs::read(MACHINE_ID).unwrap_or_default().hash(&mut hasher);
    device.hash(&mut hasher);
    let [a, b, c, d, ..] = hasher.finish().to_be_bytes();
    [0x02, 0xfe, a, b, c, d]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_the_devices_own_and_the_same_each_time() {
        let address = address_of(("tap", 7));
        assert_eq!(address[0] & 3, 2);
        assert_eq!(address, address_of(("tap", 7)));
        assert_ne!(address, address_of(("tap", 8)));
    }
}
