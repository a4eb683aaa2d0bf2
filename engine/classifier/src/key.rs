//! The fields of a packet that rules are compared with.

/// Where the fields of one byte stand in [`Key::fields`] and in the value and mask of a rule.
pub mod field {
    /// The protocol behind extension headers, 8 bits.
    pub const PROTOCOL: u32 = 0xff;
    /// First bit of the TCP flags, as they stand in the header.
    pub const TCP_FLAGS_SHIFT: u32 = 8;
    /// TCP flags, 8 bits.
    pub const TCP_FLAGS: u32 = 0xff << TCP_FLAGS_SHIFT;
    /// First bit of the DSCP.
    pub const DSCP_SHIFT: u32 = 16;
    /// DSCP, 6 bits.
    pub const DSCP: u32 = 0x3f << DSCP_SHIFT;
    /// The packet is a fragment.
    pub const FRAGMENT: u32 = 1 << 22;
    /// The packet is a fragment after the first.
    pub const LATER_FRAGMENT: u32 = 1 << 23;
    /// Rules that look at ports, ICMP types or TCP flags may match. Every such rule asks for it.
    pub const UPPER: u32 = 1 << 24;
    /// Of no packet: a rule that asks for it matches nothing.
    pub(crate) const NEVER: u32 = 1 << 30;
    /// Of packets only: ports, ICMP types and TCP flags are unknown, and every rule's match them.
    pub const ANY_UPPER: u32 = 1 << 31;
}

/// A packet as rules see it. The ports stand beside each other, so that one load reads both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Key<A> {
    /// Source address, host order.
    pub source: A,
    /// Destination address, host order.
    pub destination: A,
    /// Source port, or ICMP type.
    pub source_port: u16,
    /// Destination port, or ICMP code.
    pub destination_port: u16,
    /// The bits of [`field`].
    pub fields: u32,
    /// Bytes of the packet: for the owner of the list, who counts; no rule looks at it.
    pub length: u32,
    /// Number of the interface that received it: for sets of interfaces.
    pub rx: u32,
    /// Which of the lists is searched: for their owner; no rule looks at it.
    pub owner: u32,
}

impl<A> Key<A> {
    /// All ones where ports count for nothing, else 0.
    #[inline(always)]
    pub fn any_upper(&self) -> u32 {
        (self.fields as i32 >> 31) as u32
    }

    /// The fields that are compared at all.
    #[inline(always)]
    pub(crate) fn compared(&self) -> u32 {
        !(self.any_upper() & field::TCP_FLAGS)
    }
}
