//! Congestion notification through a tunnel (RFC 6040) and differentiated services (RFC 2983).
//!
//! At the entry of a tunnel the outer header takes the inner packet's ECN field as it is (normal
//! mode). At its exit the two are merged by the table of RFC 6040 §4.2:
//!
//! ```text
//!                     outer
//! inner      Not-ECT  ECT(0)   ECT(1)   CE
//! Not-ECT    Not-ECT  Not-ECT  Not-ECT  drop
//! ECT(0)     ECT(0)   ECT(0)   ECT(1)   CE
//! ECT(1)     ECT(1)   ECT(1)   ECT(1)   CE
//! CE         CE       CE       CE       CE
//! ```

/// The ECN field of a traffic class (RFC 3168 §5).
pub const MASK: u8 = 0b11;
/// The sender does not use ECN.
pub const NOT_ECT: u8 = 0b00;
/// ECN-capable transport, the second code point.
pub const ECT_1: u8 = 0b01;
/// ECN-capable transport, the first code point.
pub const ECT_0: u8 = 0b10;
/// Congestion experienced.
pub const CE: u8 = 0b11;

/// A packet that came through congestion, and whose inner header cannot say so: it must be dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Congestion;

/// Can the outer traffic class change the inner one? Seldom: only CE and ECT(1) do, where the inner
/// field differs.
#[inline(always)]
pub fn may_change(outer_class: u8, inner_class: u8) -> bool {
    (outer_class & 1 != 0) & ((outer_class ^ inner_class) & MASK != 0)
}

/// The traffic class that a decapsulated packet goes on with.
///
/// # Errors
/// The outer header is marked CE and the inner one is Not-ECT: the packet is to be dropped (RFC
/// 6040 §4.2).
pub fn decapsulated(outer_class: u8, inner_class: u8) -> Result<u8, Congestion> {
    let field = match (outer_class & MASK, inner_class & MASK) {
        (CE, NOT_ECT) => return Err(Congestion),
        (CE, _) => CE,
        (ECT_1, ECT_0) => ECT_1,
        (_, inner) => inner,
    };
    Ok(inner_class & !MASK | field)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pair_of_fields_gives_what_rfc_6040_says() {
        let table = [
            (NOT_ECT, [Ok(NOT_ECT), Ok(NOT_ECT), Ok(NOT_ECT), Err(Congestion)]),
            (ECT_0, [Ok(ECT_0), Ok(ECT_0), Ok(ECT_1), Ok(CE)]),
            (ECT_1, [Ok(ECT_1), Ok(ECT_1), Ok(ECT_1), Ok(CE)]),
            (CE, [Ok(CE), Ok(CE), Ok(CE), Ok(CE)]),
        ];
        for (inner, row) in table {
            for (outer, want) in [NOT_ECT, ECT_0, ECT_1, CE].into_iter().zip(row) {
                assert_eq!(
                    decapsulated(0xb8 | outer, 0x28 | inner),
                    want.map(|field| 0x28 | field)
                );
                let changes = want != Ok(inner);
                assert!(!changes || may_change(0xb8 | outer, 0x28 | inner), "{outer} {inner}");
            }
        }
    }
}
