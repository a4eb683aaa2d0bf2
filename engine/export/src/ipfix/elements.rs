//! Information elements of the IANA registry "IPFIX Information Elements" that are exported.

use crate::ipfix::template::Element;

const fn element(id: u16, bytes: u16) -> Element {
    Element { id, bytes }
}

/// octetDeltaCount.
pub const OCTETS: Element = element(1, 8);
/// packetDeltaCount.
pub const PACKETS: Element = element(2, 8);
/// ipClassOfService.
pub const CLASS_OF_SERVICE: Element = element(5, 1);
/// tcpControlBits, without those that are always 0 (RFC 7011 §6.2).
pub const TCP_FLAGS: Element = element(6, 1);
/// ingressInterface.
pub const INGRESS_INTERFACE: Element = element(10, 4);
/// destinationIPv4PrefixLength.
pub const DESTINATION_IP4_LENGTH: Element = element(13, 1);
/// egressInterface.
pub const EGRESS_INTERFACE: Element = element(14, 4);
/// ipNextHopIPv4Address.
pub const NEXT_HOP_IP4: Element = element(15, 4);
/// sourceIPv6PrefixLength.
pub const SOURCE_IP6_LENGTH: Element = element(29, 1);
/// destinationIPv6PrefixLength.
pub const DESTINATION_IP6_LENGTH: Element = element(30, 1);
/// icmpTypeCodeIPv4.
pub const ICMP_TYPE_CODE_IP4: Element = element(32, 2);
/// sourceMacAddress.
pub const SOURCE_MAC: Element = element(56, 6);
/// vlanId.
pub const VLAN: Element = element(58, 2);
/// flowDirection: 0 for what an interface receives, 1 for what it sends.
pub const FLOW_DIRECTION: Element = element(61, 1);
/// ipNextHopIPv6Address.
pub const NEXT_HOP_IP6: Element = element(62, 16);
/// destinationMacAddress.
pub const DESTINATION_MAC: Element = element(80, 6);
/// flowEndReason.
pub const FLOW_END_REASON: Element = element(136, 1);
/// icmpTypeCodeIPv6.
pub const ICMP_TYPE_CODE_IP6: Element = element(139, 2);
/// flowStartMilliseconds.
pub const FLOW_START_MS: Element = element(152, 8);
/// flowEndMilliseconds.
pub const FLOW_END_MS: Element = element(153, 8);
/// ethernetType.
pub const ETHER_TYPE: Element = element(256, 2);
/// layer2OctetDeltaCount.
pub const FRAME_OCTETS: Element = element(352, 8);
/// protocolIdentifier.
pub const PROTOCOL: Element = element(4, 1);
/// sourceTransportPort.
pub const SOURCE_PORT: Element = element(7, 2);
/// sourceIPv4Address.
pub const SOURCE_IP4: Element = element(8, 4);
/// sourceIPv4PrefixLength.
pub const SOURCE_IP4_LENGTH: Element = element(9, 1);
/// destinationTransportPort.
pub const DESTINATION_PORT: Element = element(11, 2);
/// destinationIPv4Address.
pub const DESTINATION_IP4: Element = element(12, 4);
/// sourceIPv4Prefix.
pub const SOURCE_IP4_PREFIX: Element = element(44, 4);
/// exportingProcessId.
pub const EXPORTING_PROCESS: Element = element(144, 4);
/// notSentFlowTotalCount: data records that were not sent.
pub const RECORDS_NOT_SENT: Element = element(166, 8);
/// sourceIPv6Address.
pub const SOURCE_IP6: Element = element(27, 16);
/// destinationIPv6Address.
pub const DESTINATION_IP6: Element = element(28, 16);
/// postNATSourceIPv4Address.
pub const POST_NAT_SOURCE_IP4: Element = element(225, 4);
/// postNATDestinationIPv4Address.
pub const POST_NAT_DESTINATION_IP4: Element = element(226, 4);
/// postNAPTSourceTransportPort.
pub const POST_NAPT_SOURCE_PORT: Element = element(227, 2);
/// postNAPTDestinationTransportPort.
pub const POST_NAPT_DESTINATION_PORT: Element = element(228, 2);
/// natEvent.
pub const NAT_EVENT: Element = element(230, 1);
/// ingressVRFID.
pub const INGRESS_VRF: Element = element(234, 4);
/// natPoolId.
pub const NAT_POOL: Element = element(283, 4);
/// observationTimeMilliseconds.
pub const OBSERVATION_TIME_MS: Element = element(323, 8);
/// portRangeStart.
pub const PORT_RANGE_START: Element = element(361, 2);
/// portRangeEnd.
pub const PORT_RANGE_END: Element = element(362, 2);
/// portRangeNumPorts.
pub const PORT_RANGE_COUNT: Element = element(364, 2);
/// natQuotaExceededEvent.
pub const NAT_QUOTA_EVENT: Element = element(466, 4);
/// maxSessionEntries.
pub const SESSIONS_MAX: Element = element(471, 4);
/// maxBIBEntries.
pub const MAPPINGS_MAX: Element = element(472, 4);
/// maxEntriesPerUser.
pub const ENTRIES_OF_USER_MAX: Element = element(473, 4);
