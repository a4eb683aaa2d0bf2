"""Types of the router's commands. Made by generate.py; do not edit."""

from typing import Any, Literal, NotRequired, TypedDict

Document = TypedDict(
    "Document",
    {
        "text": str | None,
        "json": Any,
    },
)

AbfPolicyAddIdArgumentViaRow = TypedDict(
    "AbfPolicyAddIdArgumentViaRow",
    {
        "next_hop": NotRequired[str],
        "interface": NotRequired[str],
        "out": NotRequired[str],
        "drop": NotRequired[bool],
        "unreachable": NotRequired[bool],
        "prohibit": NotRequired[bool],
        "table4": NotRequired[int],
        "table6": NotRequired[int],
        "weight": NotRequired[int],
        "preference": NotRequired[int],
        "next_hop_table": NotRequired[int],
    },
)

AbfPolicyDelIdArgumentViaRow = TypedDict(
    "AbfPolicyDelIdArgumentViaRow",
    {
        "next_hop": NotRequired[str],
        "interface": NotRequired[str],
        "out": NotRequired[str],
        "drop": NotRequired[bool],
        "unreachable": NotRequired[bool],
        "prohibit": NotRequired[bool],
        "table4": NotRequired[int],
        "table6": NotRequired[int],
        "weight": NotRequired[int],
        "preference": NotRequired[int],
        "next_hop_table": NotRequired[int],
    },
)

IpMrouteArgumentViaRow = TypedDict(
    "IpMrouteArgumentViaRow",
    {
        "interface": NotRequired[str],
        "local": NotRequired[bool],
        "accept": NotRequired[bool],
        "forward": NotRequired[bool],
        "ttl_threshold": NotRequired[int],
    },
)

IpRouteArgumentViaRow = TypedDict(
    "IpRouteArgumentViaRow",
    {
        "next_hop": NotRequired[str],
        "interface": NotRequired[str],
        "out": NotRequired[str],
        "drop": NotRequired[bool],
        "unreachable": NotRequired[bool],
        "prohibit": NotRequired[bool],
        "null_send_unreach": NotRequired[bool],
        "null_send_prohibit": NotRequired[bool],
        "local": NotRequired[bool],
        "punt": NotRequired[bool],
        "table4": NotRequired[int],
        "table6": NotRequired[int],
        "rx4": NotRequired[str],
        "rx6": NotRequired[str],
        "weight": NotRequired[int],
        "preference": NotRequired[int],
        "next_hop_table": NotRequired[int],
        "resolve_via_host": NotRequired[bool],
        "resolve_via_attached": NotRequired[bool],
        "src_lookup": NotRequired[bool],
        "out_label": NotRequired[list[str]],
        "uniform": NotRequired[bool],
        "pipe": NotRequired[bool],
        "ttl": NotRequired[int],
        "exp": NotRequired[int],
    },
)

LispLocatorSetAddArgumentIfaceRow = TypedDict(
    "LispLocatorSetAddArgumentIfaceRow",
    {
        "interface": str,
        "p": int,
        "w": int,
    },
)

LispRemoteMappingAddArgumentRlocRow = TypedDict(
    "LispRemoteMappingAddArgumentRlocRow",
    {
        "rloc": str,
        "p": int,
        "w": int,
    },
)

MplsLocalLabelArgumentViaRow = TypedDict(
    "MplsLocalLabelArgumentViaRow",
    {
        "next_hop": NotRequired[str],
        "interface": NotRequired[str],
        "drop": NotRequired[bool],
        "table4": NotRequired[int],
        "table6": NotRequired[int],
        "label_table": NotRequired[int],
        "l2": NotRequired[str],
        "rx4": NotRequired[str],
        "rx6": NotRequired[str],
        "weight": NotRequired[int],
        "preference": NotRequired[int],
        "out_label": NotRequired[list[str]],
        "uniform": NotRequired[bool],
        "pipe": NotRequired[bool],
        "ttl": NotRequired[int],
        "exp": NotRequired[int],
    },
)

MplsTunnelArgumentViaRow = TypedDict(
    "MplsTunnelArgumentViaRow",
    {
        "next_hop": str,
        "interface": NotRequired[str],
        "weight": NotRequired[int],
        "preference": NotRequired[int],
        "out_label": list[str],
        "ttl": NotRequired[int],
        "exp": NotRequired[int],
    },
)

MplsTunnelSetArgumentViaRow = TypedDict(
    "MplsTunnelSetArgumentViaRow",
    {
        "next_hop": str,
        "interface": NotRequired[str],
        "weight": NotRequired[int],
        "preference": NotRequired[int],
        "out_label": list[str],
        "ttl": NotRequired[int],
        "exp": NotRequired[int],
    },
)

Nat44AddLoadBalancingStaticMappingProtocolArgumentLocalRow = TypedDict(
    "Nat44AddLoadBalancingStaticMappingProtocolArgumentLocalRow",
    {
        "local": str,
        "vrf": NotRequired[int],
        "probability": NotRequired[int],
    },
)

OneLocatorSetAddArgumentIfaceRow = TypedDict(
    "OneLocatorSetAddArgumentIfaceRow",
    {
        "interface": str,
        "p": int,
        "w": int,
    },
)

OneRemoteMappingAddArgumentRlocRow = TypedDict(
    "OneRemoteMappingAddArgumentRlocRow",
    {
        "rloc": str,
        "p": int,
        "w": int,
    },
)

QosEgressMapIdArgumentSourceRow = TypedDict(
    "QosEgressMapIdArgumentSourceRow",
    {
        "source": Literal["ip", "vlan", "mpls", "ext"],
        "first": int,
        "last": NotRequired[int],
        "out": int,
    },
)

SetAclPluginAclArgumentActionRow = TypedDict(
    "SetAclPluginAclArgumentActionRow",
    {
        "action": Literal["permit", "deny", "permit+reflect"],
        "log": NotRequired[bool],
        "ipv4": NotRequired[bool],
        "ipv6": NotRequired[bool],
        "src": NotRequired[str],
        "dst": NotRequired[str],
        "proto": NotRequired[int | Literal["tcp", "udp", "icmp", "icmp6"]],
        "sport": NotRequired[str],
        "dport": NotRequired[str],
        "src_set": NotRequired[str],
        "dst_set": NotRequired[str],
        "sport_set": NotRequired[str],
        "dport_set": NotRequired[str],
        "rx_set": NotRequired[str],
        "tcpflags": NotRequired[int],
        "mask": NotRequired[int],
        "dscp": NotRequired[int],
        "fragment": NotRequired[bool],
    },
)

SetAclPluginAclRestArgumentActionRow = TypedDict(
    "SetAclPluginAclRestArgumentActionRow",
    {
        "action": Literal["permit", "deny", "permit+reflect"],
        "log": NotRequired[bool],
        "ipv4": NotRequired[bool],
        "ipv6": NotRequired[bool],
        "src": NotRequired[str],
        "dst": NotRequired[str],
        "proto": NotRequired[int | Literal["tcp", "udp", "icmp", "icmp6"]],
        "sport": NotRequired[str],
        "dport": NotRequired[str],
        "src_set": NotRequired[str],
        "dst_set": NotRequired[str],
        "sport_set": NotRequired[str],
        "dport_set": NotRequired[str],
        "rx_set": NotRequired[str],
        "tcpflags": NotRequired[int],
        "mask": NotRequired[int],
        "dscp": NotRequired[int],
        "fragment": NotRequired[bool],
    },
)

SetAclPluginAclRuleArgumentActionRow = TypedDict(
    "SetAclPluginAclRuleArgumentActionRow",
    {
        "action": Literal["permit", "deny", "permit+reflect"],
        "log": NotRequired[bool],
        "ipv4": NotRequired[bool],
        "ipv6": NotRequired[bool],
        "src": NotRequired[str],
        "dst": NotRequired[str],
        "proto": NotRequired[int | Literal["tcp", "udp", "icmp", "icmp6"]],
        "sport": NotRequired[str],
        "dport": NotRequired[str],
        "src_set": NotRequired[str],
        "dst_set": NotRequired[str],
        "sport_set": NotRequired[str],
        "dport_set": NotRequired[str],
        "rx_set": NotRequired[str],
        "tcpflags": NotRequired[int],
        "mask": NotRequired[int],
        "dscp": NotRequired[int],
        "fragment": NotRequired[bool],
    },
)

SetAclPluginMacipAclArgumentActionRow = TypedDict(
    "SetAclPluginMacipAclArgumentActionRow",
    {
        "action": Literal["permit", "deny"],
        "ip": NotRequired[str],
        "mac": NotRequired[str],
        "mask": NotRequired[str],
    },
)

Show6rdTunnelRow = TypedDict(
    "Show6rdTunnelRow",
    {
        "border_relay": str | None,
        "bytes": int,
        "delegated_prefix": str | None,
        "interface": str,
        "ip4_prefix": str,
        "ip6_prefix": str,
        "packets": int,
        "security_check": bool,
        "source": str,
        "state": str,
        "table": int,
    },
)

ShowAbfAttachRow = TypedDict(
    "ShowAbfAttachRow",
    {
        "family": str,
        "interface": str,
        "policy": int,
        "priority": int,
    },
)

ShowAbfPolicyRowAttachedRow = TypedDict(
    "ShowAbfPolicyRowAttachedRow",
    {
        "family": str,
        "usable": bool,
    },
)

ShowAbfPolicyRow = TypedDict(
    "ShowAbfPolicyRow",
    {
        "attached": list[ShowAbfPolicyRowAttachedRow],
        "bytes": int,
        "drop_if_unusable": bool,
        "match": str,
        "packets": int,
        "paths": list[str],
        "policy": int,
    },
)

ShowAclRow = TypedDict(
    "ShowAclRow",
    {
        "bytes": int,
        "changes": int,
        "family": str,
        "list_max": int,
        "pairs": int,
        "probes_max": int,
        "rules": int,
        "steps_max": int,
        "structure": str,
        "tuples": int,
    },
)

ShowAclPluginAclRow = TypedDict(
    "ShowAclPluginAclRow",
    {
        "acl": int,
        "input": list[str],
        "output": list[str],
        "rules": int,
        "tag": str,
    },
)

ShowAclPluginAclRulesRow = TypedDict(
    "ShowAclPluginAclRulesRow",
    {
        "bytes": int,
        "packets": int,
        "place": int,
        "rule": str,
    },
)

ShowAclPluginAcl = TypedDict(
    "ShowAclPluginAcl",
    {
        "rules": list[ShowAclPluginAclRulesRow],
        "tag": str,
    },
)

ShowAclPluginEthertypeWhitelistRow = TypedDict(
    "ShowAclPluginEthertypeWhitelistRow",
    {
        "direction": str,
        "ethertypes": list[str],
        "interface": str,
    },
)

ShowAclPluginInterfaceRow = TypedDict(
    "ShowAclPluginInterfaceRow",
    {
        "acl": int,
        "direction": str,
        "interface": str,
        "sequence": int,
    },
)

ShowAclPluginLogActionsRow = TypedDict(
    "ShowAclPluginLogActionsRow",
    {
        "action": str,
        "lost": int,
        "made": int,
    },
)

ShowAclPluginLog = TypedDict(
    "ShowAclPluginLog",
    {
        "actions": list[ShowAclPluginLogActionsRow],
        "domain": int | None,
        "records_of_a_rule_per_s": int,
        "syslog": str,
    },
)

ShowAclPluginMacipAclRow = TypedDict(
    "ShowAclPluginMacipAclRow",
    {
        "acl": int,
        "interfaces": list[str],
        "rules": list[str],
        "tag": str,
    },
)

ShowAclPluginMacipInterfaceRow = TypedDict(
    "ShowAclPluginMacipInterfaceRow",
    {
        "acl": int,
        "interface": str,
    },
)

ShowAclPluginSessionsEntriesRow = TypedDict(
    "ShowAclPluginSessionsEntriesRow",
    {
        "idle_s": int,
        "initiator": str,
        "interface": str,
        "list_of": str,
        "protocol": str,
        "responder": str,
        "state": str,
    },
)

ShowAclPluginSessions = TypedDict(
    "ShowAclPluginSessions",
    {
        "bytes_of_sessions": int,
        "entries": list[ShowAclPluginSessionsEntriesRow],
        "sessions": int,
        "sessions_at_most": int,
        "sessions_at_once": int,
        "sessions_expired": int,
        "sessions_made": int,
        "timeout_tcp_s": int,
        "timeout_tcp_transient_s": int,
        "timeout_udp_s": int,
        "when_full": str,
    },
)

ShowAclPluginSetsRow = TypedDict(
    "ShowAclPluginSetsRow",
    {
        "access_lists": list[int],
        "elements": int,
        "of": str,
        "set": str,
    },
)

ShowAclPluginSetsElementsRow = TypedDict(
    "ShowAclPluginSetsElementsRow",
    {
        "element": str,
    },
)

ShowAclPluginSets = TypedDict(
    "ShowAclPluginSets",
    {
        "access_lists": list[int],
        "count": NotRequired[int],
        "elements": list[ShowAclPluginSetsElementsRow],
        "ipv4_prefixes": NotRequired[int],
        "ipv6_prefixes": NotRequired[int],
        "of": str,
    },
)

ShowAclPluginTablesRow = TypedDict(
    "ShowAclPluginTablesRow",
    {
        "acls": list[int],
        "bytes": int,
        "changes": int,
        "family": str,
        "list_max": int,
        "pairs": int,
        "probes_max": int,
        "rules": int,
        "steps_max": int,
        "structure": str,
        "tuples": int,
        "users": int,
    },
)

ShowAdjRow = TypedDict(
    "ShowAdjRow",
    {
        "bytes": int | None,
        "family": str,
        "index": int,
        "interface": str,
        "mtu_bytes": int,
        "next_hop": str | None,
        "node": str,
        "packets": int | None,
        "rewrite": str,
    },
)

ShowArpProxyInterfacesRow = TypedDict(
    "ShowArpProxyInterfacesRow",
    {
        "interface": str,
    },
)

ShowArpProxyRangesRow = TypedDict(
    "ShowArpProxyRangesRow",
    {
        "end": str,
        "start": str,
        "table": int,
    },
)

ShowArpProxy = TypedDict(
    "ShowArpProxy",
    {
        "interfaces": list[ShowArpProxyInterfacesRow],
        "ranges": list[ShowArpProxyRangesRow],
    },
)

ShowBfdDplaneRow = TypedDict(
    "ShowBfdDplaneRow",
    {
        "address": str,
        "connected": int,
        "daemon": str | None,
        "malformed": int,
        "namespace": str | None,
        "orphans": int,
        "received": int,
        "refused": int,
        "sent": int,
        "sessions": int,
    },
)

ShowBfdEchoSourceRow = TypedDict(
    "ShowBfdEchoSourceRow",
    {
        "interface": str,
    },
)

ShowBfdKeysRow = TypedDict(
    "ShowBfdKeysRow",
    {
        "conf_key_id": int,
        "sessions": int,
        "type": str,
    },
)

ShowBfdSessionsRow = TypedDict(
    "ShowBfdSessionsRow",
    {
        "authentication": NotRequired[str | None],
        "bond": str | None,
        "came_up": NotRequired[int],
        "detect_mult": NotRequired[int],
        "detection_time_ms": float,
        "diagnostic": str,
        "echoes_received": NotRequired[int],
        "echoes_returned": NotRequired[int],
        "echoes_sent": NotRequired[int],
        "interface": str | None,
        "is_polling": NotRequired[bool],
        "local": str,
        "my_discriminator": NotRequired[int],
        "origin": str,
        "path": NotRequired[str],
        "peer": str,
        "received": NotRequired[int],
        "refused": NotRequired[int],
        "remote_detect_mult": NotRequired[int],
        "remote_diagnostic": NotRequired[str],
        "remote_min_rx_ms": NotRequired[float],
        "remote_min_tx_ms": NotRequired[float],
        "remote_state": str,
        "sent": NotRequired[int],
        "since_s": NotRequired[float],
        "state": str,
        "transmit_interval_ms": float,
        "went_down": int,
        "worker": NotRequired[int],
        "your_discriminator": NotRequired[int],
    },
)

ShowBondRowMembersRow = TypedDict(
    "ShowBondRowMembersRow",
    {
        "active": bool,
        "alive": bool | None,
        "interface": str,
        "long_timeout": bool,
        "passive": bool,
        "weight": int,
    },
)

ShowBondRow = TypedDict(
    "ShowBondRow",
    {
        "active": NotRequired[list[str]],
        "active_members": NotRequired[int],
        "id": NotRequired[int],
        "index": int,
        "interface": str,
        "load_balance": str | None,
        "members": list[ShowBondRowMembersRow] | int,
        "mode": str,
    },
)

ShowBridgeDomainRow = TypedDict(
    "ShowBridgeDomainRow",
    {
        "arp_term": bool,
        "arp_ufwd": bool,
        "bvi": str | None,
        "flood": bool,
        "forward": bool,
        "id": int,
        "index": int,
        "interfaces": int,
        "learn_limit": int,
        "learned": int,
        "learning": bool,
        "mac_age_minutes": int,
        "uu_flood": bool,
        "uu_fwd": str | None,
    },
)

ShowBridgeDomainArpRow = TypedDict(
    "ShowBridgeDomainArpRow",
    {
        "address": str,
        "mac": str,
    },
)

ShowBridgeDomainDomainRow = TypedDict(
    "ShowBridgeDomainDomainRow",
    {
        "arp_term": bool,
        "arp_ufwd": bool,
        "bvi": str | None,
        "flood": bool,
        "forward": bool,
        "id": int,
        "index": int,
        "interfaces": int,
        "learn_limit": int,
        "learned": int,
        "learning": bool,
        "mac_age_minutes": int,
        "uu_flood": bool,
        "uu_fwd": str | None,
    },
)

ShowBridgeDomainInterfacesRow = TypedDict(
    "ShowBridgeDomainInterfacesRow",
    {
        "bvi": bool,
        "flood": bool,
        "forward": bool,
        "index": int,
        "interface": str,
        "learn": bool,
        "split_horizon_group": int,
        "state": str,
        "uu_fwd": bool,
    },
)

ShowBridgeDomain = TypedDict(
    "ShowBridgeDomain",
    {
        "arp": NotRequired[list[ShowBridgeDomainArpRow]],
        "domain": list[ShowBridgeDomainDomainRow],
        "interfaces": list[ShowBridgeDomainInterfacesRow],
    },
)

ShowBuffersPoolsRow = TypedDict(
    "ShowBuffersPoolsRow",
    {
        "avail": int,
        "cached": int,
        "data_bytes": int,
        "failures": int,
        "name": str,
        "size_bytes": int,
        "total": int,
        "used": int,
    },
)

ShowBuffers = TypedDict(
    "ShowBuffers",
    {
        "pools": list[ShowBuffersPoolsRow],
    },
)

ShowClassifyFilterRow = TypedDict(
    "ShowClassifyFilterRow",
    {
        "filter": str,
        "mask": str,
        "match": str,
    },
)

ShowClassifyPolicerRow = TypedDict(
    "ShowClassifyPolicerRow",
    {
        "direction": str,
        "interface": str,
        "table": int,
        "type": str,
    },
)

ShowClassifyTablesRow = TypedDict(
    "ShowClassifyTablesRow",
    {
        "action": NotRequired[str],
        "color": NotRequired[str | None],
        "fib_id": NotRequired[int | None],
        "hits": int,
        "mask": NotRequired[str],
        "match": NotRequired[str],
        "miss": NotRequired[str],
        "misses": NotRequired[int],
        "next": NotRequired[int | None],
        "policer": NotRequired[str | None],
        "sessions": NotRequired[int],
        "table": int,
    },
)

ShowClock = TypedDict(
    "ShowClock",
    {
        "unix_s": float,
        "up_s": float,
        "utc": str,
    },
)

ShowConfigurationPending = TypedDict(
    "ShowConfigurationPending",
    {
        "left_s": int,
        "number": int,
        "until": str,
        "who": str,
    },
)

ShowConfigurationSaved = TypedDict(
    "ShowConfigurationSaved",
    {
        "message": str,
        "number": int,
        "when": str,
        "who": str,
    },
)

ShowConfiguration = TypedDict(
    "ShowConfiguration",
    {
        "differs": bool,
        "generation": str,
        "lines_gone": int,
        "lines_new": int,
        "pending": ShowConfigurationPending | None,
        "saved": ShowConfigurationSaved | None,
    },
)

ShowConfigurationHistoryRow = TypedDict(
    "ShowConfigurationHistoryRow",
    {
        "message": str,
        "number": int,
        "state": str | None,
        "when": str,
        "who": str,
    },
)

ShowConfigurationVersion = TypedDict(
    "ShowConfigurationVersion",
    {
        "text": str,
    },
)

ShowControl = TypedDict(
    "ShowControl",
    {
        "commands_that_rested": int,
        "commands_under_way": int,
        "longest_step_ms": float,
        "longest_step_of": str,
        "longest_turn_ms": float,
        "most_units_in_a_turn": int,
        "steps": int,
        "turns_cut_short": int,
        "turns_with_commands": int,
        "units_in_a_turn_at_most": int,
    },
)

ShowCopRow = TypedDict(
    "ShowCopRow",
    {
        "interface": str,
        "ip4_table": int | None,
        "ip6_table": int | None,
        "state": str,
    },
)

ShowCpu = TypedDict(
    "ShowCpu",
    {
        "cores": int,
        "flags": list[str],
        "flags_missing": list[str],
        "model": str,
        "tsc_hz": float,
        "variant": str,
        "variants": list[str],
        "worker_cores": list[int | None],
    },
)

ShowDet44InterfacesRow = TypedDict(
    "ShowDet44InterfacesRow",
    {
        "interface": str,
        "side": str,
    },
)

ShowDet44MappingsRow = TypedDict(
    "ShowDet44MappingsRow",
    {
        "bytes_max": int,
        "inside": str,
        "outside": str,
        "ports_per_host": int,
        "sessions": int,
        "sessions_max": int,
        "sharing_ratio": int,
    },
)

ShowDet44SessionsRow = TypedDict(
    "ShowDet44SessionsRow",
    {
        "idle_s": int,
        "inside": str,
        "outside": str,
        "protocol": str,
        "remote": str,
        "state": str,
    },
)

ShowDet44Summary = TypedDict(
    "ShowDet44Summary",
    {
        "mappings": int,
        "sessions": int,
        "sessions_at_most": int,
    },
)

ShowDet44TimeoutsRow = TypedDict(
    "ShowDet44TimeoutsRow",
    {
        "of": str,
        "timeout_s": int,
    },
)

ShowDhcp6ClientsRow = TypedDict(
    "ShowDhcp6ClientsRow",
    {
        "addresses": str | None,
        "declined": int,
        "duid": str,
        "iaid": int,
        "interface": str,
        "lease_left_s": int | None,
        "left_out": int,
        "name_servers": str | None,
        "preference": int | None,
        "rebind_s": int | None,
        "received": int,
        "refused": int,
        "renew_s": int | None,
        "sent": int,
        "server_address": str | None,
        "server_duid": str | None,
        "state": str,
    },
)

ShowDhcp6PdClientsRow = TypedDict(
    "ShowDhcp6PdClientsRow",
    {
        "declined": int,
        "duid": str,
        "group": str | None,
        "iaid": int,
        "interface": str,
        "lease_left_s": int | None,
        "left_out": int,
        "name_servers": str | None,
        "preference": int | None,
        "prefixes": str | None,
        "rebind_s": int | None,
        "received": int,
        "refused": int,
        "renew_s": int | None,
        "sent": int,
        "server_address": str | None,
        "server_duid": str | None,
        "state": str,
    },
)

ShowDhcpClientRow = TypedDict(
    "ShowDhcpClientRow",
    {
        "address": str | None,
        "declined": int,
        "interface": str,
        "lease_left_s": int | None,
        "name_servers": str | None,
        "rebind_s": int | None,
        "received": int,
        "refused": int,
        "renew_s": int | None,
        "routers": str | None,
        "sent": int,
        "server": str | None,
        "state": str,
    },
)

ShowDhcpOption82Row = TypedDict(
    "ShowDhcpOption82Row",
    {
        "circuit_id": str,
        "interface": str,
        "policy": str,
        "remote_id": str | None,
        "server_override": bool,
        "state": str,
        "vss": str | None,
    },
)

ShowDhcpProxyRow = TypedDict(
    "ShowDhcpProxyRow",
    {
        "rx_table": int,
        "server": str,
        "server_table": int,
        "source_address": str | None,
    },
)

ShowDhcpVssRow = TypedDict(
    "ShowDhcpVssRow",
    {
        "oui": int | None,
        "table": int,
        "vpn_index": int | None,
        "vpn_name": str | None,
    },
)

ShowDhcpv6OptionsRow = TypedDict(
    "ShowDhcpv6OptionsRow",
    {
        "enterprise": int | None,
        "interface": str,
        "link_layer_address": bool,
        "remote_id": str | None,
    },
)

ShowDhcpv6ProxyRow = TypedDict(
    "ShowDhcpv6ProxyRow",
    {
        "rx_table": int,
        "server": str,
        "server_table": int,
        "source_address": str | None,
    },
)

ShowDhcpv6ProxyPrefixesRow = TypedDict(
    "ShowDhcpv6ProxyPrefixesRow",
    {
        "client": str,
        "interface": str,
        "prefix": str,
        "route": bool,
        "valid_s": int | None,
    },
)

ShowDhcpv6VssRow = TypedDict(
    "ShowDhcpv6VssRow",
    {
        "oui": int | None,
        "table": int,
        "vpn_index": int | None,
        "vpn_name": str | None,
    },
)

ShowDsliteAftrTunnelEndpointAddressB4PrefixesRow = TypedDict(
    "ShowDsliteAftrTunnelEndpointAddressB4PrefixesRow",
    {
        "prefix": str,
    },
)

ShowDsliteAftrTunnelEndpointAddress = TypedDict(
    "ShowDsliteAftrTunnelEndpointAddress",
    {
        "aftr": str | None,
        "b4_prefixes": list[ShowDsliteAftrTunnelEndpointAddressB4PrefixesRow],
        "b4s": int,
        "b4s_at_most": int,
        "b4s_of_a_subscriber_at_most": int,
        "prefix_length_of_a_subscriber": int,
        "tunnel_mtu_bytes": int,
    },
)

ShowDsliteB4sRow = TypedDict(
    "ShowDsliteB4sRow",
    {
        "b4": str,
        "blocks": int,
        "idle_s": int,
        "mappings": int,
        "sessions": int,
    },
)

ShowDslitePoolRow = TypedDict(
    "ShowDslitePoolRow",
    {
        "first": str,
        "last": str,
    },
)

ShowErrorsErrorsRow = TypedDict(
    "ShowErrorsErrorsRow",
    {
        "count": int,
        "node": str,
        "reason": str,
        "severity": str,
        "text": str,
    },
)

ShowErrors = TypedDict(
    "ShowErrors",
    {
        "errors": list[ShowErrorsErrorsRow],
    },
)

ShowFeaturesArcsRowFeaturesRow = TypedDict(
    "ShowFeaturesArcsRowFeaturesRow",
    {
        "node": str,
        "phase": str,
    },
)

ShowFeaturesArcsRow = TypedDict(
    "ShowFeaturesArcsRow",
    {
        "features": list[ShowFeaturesArcsRowFeaturesRow],
        "name": str,
    },
)

ShowFeaturesFeaturesRow = TypedDict(
    "ShowFeaturesFeaturesRow",
    {
        "help": str,
        "name": str,
    },
)

ShowFeatures = TypedDict(
    "ShowFeatures",
    {
        "arcs": list[ShowFeaturesArcsRow],
        "features": list[ShowFeaturesFeaturesRow],
        "pairs": list[list[str]],
    },
)

ShowFibLimitsRow = TypedDict(
    "ShowFibLimitsRow",
    {
        "limit": int,
        "used": int,
        "what": str,
    },
)

ShowFlowprobeFeatureRow = TypedDict(
    "ShowFlowprobeFeatureRow",
    {
        "direction": str,
        "interface": str,
        "packets": str,
    },
)

ShowFlowprobeParams = TypedDict(
    "ShowFlowprobeParams",
    {
        "active_s": int,
        "domain": int,
        "flows_of_a_worker": int,
        "passive_s": int,
        "record": list[str],
    },
)

ShowFlowprobeStatisticsRecordsRow = TypedDict(
    "ShowFlowprobeStatisticsRecordsRow",
    {
        "lost": int,
        "made": int,
        "reason": str,
    },
)

ShowFlowprobeStatisticsWorkersRow = TypedDict(
    "ShowFlowprobeStatisticsWorkersRow",
    {
        "flows": int,
        "worker": int,
    },
)

ShowFlowprobeStatistics = TypedDict(
    "ShowFlowprobeStatistics",
    {
        "exported": int,
        "records": list[ShowFlowprobeStatisticsRecordsRow],
        "workers": list[ShowFlowprobeStatisticsWorkersRow],
    },
)

ShowGeneveTunnelRow = TypedDict(
    "ShowGeneveTunnelRow",
    {
        "bytes": int,
        "destination": str | None,
        "interface": str,
        "packets": int,
        "path_mtu_bytes": int | None,
        "ports": str | None,
        "reason": str | None,
        "source": str,
        "state": str,
        "table": int,
        "underlay": str | None,
        "vni": int | None,
    },
)

ShowGraphNodesRow = TypedDict(
    "ShowGraphNodesRow",
    {
        "kind": str,
        "name": str,
        "next": list[str],
    },
)

ShowGraph = TypedDict(
    "ShowGraph",
    {
        "nodes": list[ShowGraphNodesRow],
    },
)

ShowGreTunnelRow = TypedDict(
    "ShowGreTunnelRow",
    {
        "bytes": int,
        "destination": str,
        "interface": str,
        "key": int | None,
        "next_hop": str | None,
        "packets": int,
        "path_mtu_bytes": int | None,
        "reason": str | None,
        "session": int | None,
        "source": str,
        "state": str,
        "table": int,
        "type": str,
        "underlay": str | None,
    },
)

ShowHardwareInterfacesInterfacesRowFacts = TypedDict(
    "ShowHardwareInterfacesInterfacesRowFacts",
    {
        "connects": NotRequired[int],
        "disconnects": NotRequired[int],
        "frames_sent_and_not_yet_looked_at": NotRequired[int],
        "last_disconnect": NotRequired[str],
        "linux_index": NotRequired[int],
        "linux_mac": NotRequired[str],
        "linux_mtu_bytes": NotRequired[int],
        "linux_name": NotRequired[str],
        "linux_state": NotRequired[str],
        "mode": NotRequired[str],
        "peer": NotRequired[str],
        "role": NotRequired[str],
        "rx_queues": NotRequired[int],
        "socket": NotRequired[str],
        "times_gone": NotRequired[int],
        "tx_failed": NotRequired[bool],
        "tx_file": NotRequired[str],
        "tx_packets_written": NotRequired[int],
        "tx_queues": NotRequired[int],
    },
)

ShowHardwareInterfacesInterfacesRow = TypedDict(
    "ShowHardwareInterfacesInterfacesRow",
    {
        "facts": ShowHardwareInterfacesInterfacesRowFacts,
        "hardware": str,
        "index": int,
        "link": str,
        "mac": str,
        "name": str,
        "rx_queues": int,
        "takes_offloads": NotRequired[bool],
    },
)

ShowHardwareInterfaces = TypedDict(
    "ShowHardwareInterfaces",
    {
        "interfaces": list[ShowHardwareInterfacesInterfacesRow],
    },
)

ShowIgmpRowGroupsRow = TypedDict(
    "ShowIgmpRowGroupsRow",
    {
        "group": str,
        "sources": list[str] | None,
    },
)

ShowIgmpRow = TypedDict(
    "ShowIgmpRow",
    {
        "groups": list[ShowIgmpRowGroupsRow],
        "interface": str,
        "not_sent": int,
        "querier": str | None,
        "queries": int,
        "sent": int,
        "version": int,
    },
)

ShowIgmpConfigRow = TypedDict(
    "ShowIgmpConfigRow",
    {
        "address": str | None,
        "foreign": int,
        "groups": int,
        "interface": str,
        "mode": str,
        "not_sent": int,
        "querier": str | None,
        "queries_sent": int,
        "records": int,
        "refused": int,
    },
)

ShowIgmpGroupsRow = TypedDict(
    "ShowIgmpGroupsRow",
    {
        "ends_s": float,
        "filter": str,
        "group": str,
        "interface": str,
        "sources": list[str],
    },
)

ShowIgmpProxyDevRow = TypedDict(
    "ShowIgmpProxyDevRow",
    {
        "groups_joined": int,
        "interfaces": list[str],
        "routes_failed": int,
        "table": int,
        "upstream": str | None,
    },
)

ShowIgmpTimersRow = TypedDict(
    "ShowIgmpTimersRow",
    {
        "interface": str,
        "last_member_interval_ms": int,
        "membership_interval_s": int,
        "query_interval_s": int,
        "response_interval_ms": int,
        "robustness": int,
        "version": int,
    },
)

ShowInaclRow = TypedDict(
    "ShowInaclRow",
    {
        "interface": str,
        "ip4_table": int | None,
        "ip6_table": int | None,
        "l2_table": int | None,
    },
)

ShowInterfaceInterfacesRowCounters = TypedDict(
    "ShowInterfaceInterfacesRowCounters",
    {
        "drops": int,
        "ip4": int,
        "ip6": int,
        "punt": int,
        "rx_bytes": int,
        "rx_error": int,
        "rx_no_buffer": int,
        "rx_packets": int,
        "tx_bytes": int,
        "tx_error": int,
        "tx_packets": int,
    },
)

ShowInterfaceInterfacesRowFeaturesRow = TypedDict(
    "ShowInterfaceInterfacesRowFeaturesRow",
    {
        "arc": str,
        "features": list[str],
    },
)

ShowInterfaceInterfacesRowRxQueuesRow = TypedDict(
    "ShowInterfaceInterfacesRowRxQueuesRow",
    {
        "mode": str,
        "node": str,
        "queue": int,
        "worker": int,
    },
)

ShowInterfaceInterfacesRow = TypedDict(
    "ShowInterfaceInterfacesRow",
    {
        "counters": ShowInterfaceInterfacesRowCounters,
        "features": list[ShowInterfaceInterfacesRowFeaturesRow],
        "index": int,
        "input": str,
        "kind": str,
        "link": str,
        "mac": str,
        "mtu_bytes": int,
        "mtu_ip4_bytes": int | None,
        "mtu_ip6_bytes": int | None,
        "mtu_mpls_bytes": int | None,
        "name": str,
        "promiscuous": bool,
        "rx_queues": list[ShowInterfaceInterfacesRowRxQueuesRow],
        "state": str,
        "tag": str | None,
        "takes_offloads": NotRequired[bool],
    },
)

ShowInterface = TypedDict(
    "ShowInterface",
    {
        "interfaces": list[ShowInterfaceInterfacesRow],
    },
)

ShowInterfaceAddressRow = TypedDict(
    "ShowInterfaceAddressRow",
    {
        "addresses": list[str],
        "autoconfigured": list[str],
        "interface": str,
        "ip4_table": int,
        "ip6_table": int,
        "link_local": str | None,
        "state": str,
        "unnumbered": str | None,
    },
)

ShowInterfaceFeaturesArcsRow = TypedDict(
    "ShowInterfaceFeaturesArcsRow",
    {
        "arc": str,
        "features": list[str],
    },
)

ShowInterfaceFeatures = TypedDict(
    "ShowInterfaceFeatures",
    {
        "arcs": list[ShowInterfaceFeaturesArcsRow],
        "interface": str,
    },
)

ShowInterfaceL2TagRewriteInterfacesRowPushRow = TypedDict(
    "ShowInterfaceL2TagRewriteInterfacesRowPushRow",
    {
        "kind": str,
        "vlan": int,
    },
)

ShowInterfaceL2TagRewriteInterfacesRow = TypedDict(
    "ShowInterfaceL2TagRewriteInterfacesRow",
    {
        "interface": str,
        "pop": int,
        "push": list[ShowInterfaceL2TagRewriteInterfacesRowPushRow],
    },
)

ShowInterfaceL2TagRewrite = TypedDict(
    "ShowInterfaceL2TagRewrite",
    {
        "interfaces": list[ShowInterfaceL2TagRewriteInterfacesRow],
    },
)

ShowInterfaceRxPlacementQueuesRow = TypedDict(
    "ShowInterfaceRxPlacementQueuesRow",
    {
        "interface": str,
        "mode": str,
        "node": str,
        "queue": int,
        "worker": int,
    },
)

ShowInterfaceRxPlacement = TypedDict(
    "ShowInterfaceRxPlacement",
    {
        "queues": list[ShowInterfaceRxPlacementQueuesRow],
    },
)

ShowInterfaceSpanRow = TypedDict(
    "ShowInterfaceSpanRow",
    {
        "destination": str,
        "directions": str,
        "source": str,
    },
)

ShowInterfaceTagRow = TypedDict(
    "ShowInterfaceTagRow",
    {
        "interface": str,
        "tag": str,
    },
)

ShowIp4FullReassemblyInterfacesRow = TypedDict(
    "ShowIp4FullReassemblyInterfacesRow",
    {
        "interface": str,
        "needed_by": list[str] | str,
    },
)

ShowIp4FullReassemblyPacketsRow = TypedDict(
    "ShowIp4FullReassemblyPacketsRow",
    {
        "age_s": float,
        "bytes": int,
        "destination": str,
        "for": str,
        "fragments": int,
        "id": int,
        "of": int | None,
        "protocol": str | None,
        "source": str,
        "state": str,
        "worker": int,
    },
)

ShowIp4FullReassembly = TypedDict(
    "ShowIp4FullReassembly",
    {
        "buffers_held": int,
        "expire_walk_interval_ms": int,
        "interfaces": list[ShowIp4FullReassemblyInterfacesRow],
        "most_buffers_all_kinds": int,
        "most_fragments_per_packet": int,
        "most_packets_per_worker": int,
        "packets": NotRequired[list[ShowIp4FullReassemblyPacketsRow]],
        "packets_under_way": int,
        "timeout_ms": int,
    },
)

ShowIp4SvReassemblyInterfacesRow = TypedDict(
    "ShowIp4SvReassemblyInterfacesRow",
    {
        "interface": str,
        "needed_by": list[str] | str,
    },
)

ShowIp4SvReassemblyPacketsRow = TypedDict(
    "ShowIp4SvReassemblyPacketsRow",
    {
        "age_s": float,
        "bytes": int,
        "destination": str,
        "for": str,
        "fragments": int,
        "id": int,
        "of": int | None,
        "protocol": str,
        "source": str,
        "state": str,
        "worker": int,
    },
)

ShowIp4SvReassembly = TypedDict(
    "ShowIp4SvReassembly",
    {
        "buffers_held": int,
        "expire_walk_interval_ms": int,
        "interfaces": list[ShowIp4SvReassemblyInterfacesRow],
        "most_buffers_all_kinds": int,
        "most_fragments_per_packet": int,
        "most_packets_per_worker": int,
        "packets": NotRequired[list[ShowIp4SvReassemblyPacketsRow]],
        "packets_under_way": int,
        "timeout_ms": int,
    },
)

ShowIp6AddressesRow = TypedDict(
    "ShowIp6AddressesRow",
    {
        "address": str | None,
        "given": str,
        "group": str,
        "in_use": bool,
        "interface": str,
        "reason": str | None,
    },
)

ShowIp6AutoconfigInterfacesRow = TypedDict(
    "ShowIp6AutoconfigInterfacesRow",
    {
        "advertisements": int,
        "asking": bool,
        "default_route": bool,
        "hop_limit": int | None,
        "ignored_mtus": int,
        "ignored_prefixes": int,
        "ignored_routers": int,
        "ignored_routes": int,
        "interface": str,
        "invalid": int,
        "mtu_bytes": int | None,
        "solicitations": int,
    },
)

ShowIp6AutoconfigPrefixesRow = TypedDict(
    "ShowIp6AutoconfigPrefixesRow",
    {
        "address": str | None,
        "interface": str,
        "on_link": bool,
        "preferred_s": int | None,
        "prefix": str,
        "state": str | None,
        "valid_s": int | None,
    },
)

ShowIp6Autoconfig = TypedDict(
    "ShowIp6Autoconfig",
    {
        "interfaces": list[ShowIp6AutoconfigInterfacesRow],
        "prefixes": list[ShowIp6AutoconfigPrefixesRow],
    },
)

ShowIp6FibRowHopsRow = TypedDict(
    "ShowIp6FibRowHopsRow",
    {
        "index": int,
        "interface": str | None,
        "next_hop": str | None,
        "node": str,
        "table": int | None,
        "weight": int,
    },
)

ShowIp6FibRowStatesRow = TypedDict(
    "ShowIp6FibRowStatesRow",
    {
        "state": str,
        "text": str,
    },
)

ShowIp6FibRow = TypedDict(
    "ShowIp6FibRow",
    {
        "best": NotRequired[bool],
        "count": NotRequired[int],
        "hops": NotRequired[list[ShowIp6FibRowHopsRow]],
        "length_bits": NotRequired[int],
        "load_balance": NotRequired[int | None],
        "paths": NotRequired[list[str]],
        "prefix": NotRequired[str],
        "source": NotRequired[str],
        "states": NotRequired[list[ShowIp6FibRowStatesRow]],
        "table": int,
    },
)

ShowIp6FullReassemblyInterfacesRow = TypedDict(
    "ShowIp6FullReassemblyInterfacesRow",
    {
        "interface": str,
        "needed_by": list[str] | str,
    },
)

ShowIp6FullReassemblyPacketsRow = TypedDict(
    "ShowIp6FullReassemblyPacketsRow",
    {
        "age_s": float,
        "bytes": int,
        "destination": str,
        "for": str,
        "fragments": int,
        "id": int,
        "of": int | None,
        "source": str,
        "state": str,
        "worker": int,
    },
)

ShowIp6FullReassembly = TypedDict(
    "ShowIp6FullReassembly",
    {
        "buffers_held": int,
        "expire_walk_interval_ms": int,
        "interfaces": list[ShowIp6FullReassemblyInterfacesRow],
        "most_buffers_all_kinds": int,
        "most_fragments_per_packet": int,
        "most_packets_per_worker": int,
        "packets": NotRequired[list[ShowIp6FullReassemblyPacketsRow]],
        "packets_under_way": int,
        "timeout_ms": int,
    },
)

ShowIp6InterfaceRow = TypedDict(
    "ShowIp6InterfaceRow",
    {
        "addresses": list[str],
        "dad_probes": int,
        "dad_waits": bool,
        "groups": list[str],
        "interface": str,
        "link_local": str | None,
        "mtu_bytes": int,
        "state": str,
        "table": int | None,
    },
)

ShowIp6MfibRowForwardRow = TypedDict(
    "ShowIp6MfibRowForwardRow",
    {
        "interface": str,
        "state": str,
        "ttl_threshold": int,
    },
)

ShowIp6MfibRow = TypedDict(
    "ShowIp6MfibRow",
    {
        "accept": list[str],
        "bytes": int,
        "flags": list[str],
        "forward": list[ShowIp6MfibRowForwardRow],
        "group": str,
        "packets": int,
        "rpf_failures": int,
        "source": str,
        "table": int | None,
    },
)

ShowIp6NdRowInterval = TypedDict(
    "ShowIp6NdRowInterval",
    {
        "max_s": int,
        "min_s": int,
    },
)

ShowIp6NdRow = TypedDict(
    "ShowIp6NdRow",
    {
        "advertisements": int,
        "flags": list[str],
        "inconsistent": int,
        "interface": str,
        "interval": ShowIp6NdRowInterval,
        "lifetime_s": int,
        "not_sent": int,
        "prefixes": list[str],
        "sent": int,
        "sent_unicast": int,
        "solicitations": int,
        "state": str,
    },
)

ShowIp6NdProxyRow = TypedDict(
    "ShowIp6NdProxyRow",
    {
        "address": str,
        "interface": str,
        "kind": str,
    },
)

ShowIp6NdRoutersRow = TypedDict(
    "ShowIp6NdRoutersRow",
    {
        "address": str,
        "interface": str,
        "lifetime_s": int | None,
        "preference": str,
        "prefix": str,
        "used": bool,
    },
)

ShowIp6NeighborsRow = TypedDict(
    "ShowIp6NeighborsRow",
    {
        "address": str,
        "age_s": float,
        "interface": str,
        "mac": str | None,
        "state": str,
    },
)

ShowIp6PrefixesRow = TypedDict(
    "ShowIp6PrefixesRow",
    {
        "discard_route": bool,
        "group": str,
        "interface": str,
        "preferred_s": int | None,
        "prefix": str,
        "valid_s": int | None,
    },
)

ShowIp6PuntRedirectRow = TypedDict(
    "ShowIp6PuntRedirectRow",
    {
        "interface": str,
        "next_hop": str,
        "received_on": str,
    },
)

ShowIp6RaRow = TypedDict(
    "ShowIp6RaRow",
    {
        "address": str,
        "age_s": float,
        "contradicts": list[str],
        "flags": list[str] | str,
        "hop_limit": int,
        "interface": str,
        "lifetime_s": int,
        "mtu_bytes": int,
        "prefixes": list[str],
    },
)

ShowIp6SvReassemblyInterfacesRow = TypedDict(
    "ShowIp6SvReassemblyInterfacesRow",
    {
        "interface": str,
        "needed_by": list[str] | str,
    },
)

ShowIp6SvReassemblyPacketsRow = TypedDict(
    "ShowIp6SvReassemblyPacketsRow",
    {
        "age_s": float,
        "bytes": int,
        "destination": str,
        "for": str,
        "fragments": int,
        "id": int,
        "of": int | None,
        "source": str,
        "state": str,
        "worker": int,
    },
)

ShowIp6SvReassembly = TypedDict(
    "ShowIp6SvReassembly",
    {
        "buffers_held": int,
        "expire_walk_interval_ms": int,
        "interfaces": list[ShowIp6SvReassemblyInterfacesRow],
        "most_buffers_all_kinds": int,
        "most_fragments_per_packet": int,
        "most_packets_per_worker": int,
        "packets": NotRequired[list[ShowIp6SvReassemblyPacketsRow]],
        "packets_under_way": int,
        "timeout_ms": int,
    },
)

ShowIp6TableRow = TypedDict(
    "ShowIp6TableRow",
    {
        "flow_hash": str,
        "name": str | None,
        "routes": int,
        "table": int,
    },
)

ShowIpDadRow = TypedDict(
    "ShowIpDadRow",
    {
        "address": str,
        "claimed_by": str | None,
        "conflicts": int,
        "in_use": bool,
        "interface": str,
        "state": str,
    },
)

ShowIpFibRowHopsRow = TypedDict(
    "ShowIpFibRowHopsRow",
    {
        "index": int,
        "interface": str | None,
        "next_hop": str | None,
        "node": str,
        "table": int | None,
        "weight": int,
    },
)

ShowIpFibRowStatesRow = TypedDict(
    "ShowIpFibRowStatesRow",
    {
        "state": str,
        "text": str,
    },
)

ShowIpFibRow = TypedDict(
    "ShowIpFibRow",
    {
        "best": NotRequired[bool],
        "count": NotRequired[int],
        "hops": NotRequired[list[ShowIpFibRowHopsRow]],
        "length_bits": NotRequired[int],
        "load_balance": NotRequired[int | None],
        "paths": NotRequired[list[str]],
        "prefix": NotRequired[str],
        "source": NotRequired[str],
        "states": NotRequired[list[ShowIpFibRowStatesRow]],
        "table": int,
    },
)

ShowIpIcmpRateLimitRow = TypedDict(
    "ShowIpIcmpRateLimitRow",
    {
        "burst": int,
        "family": str,
        "per_second": int,
    },
)

ShowIpMfibRowForwardRow = TypedDict(
    "ShowIpMfibRowForwardRow",
    {
        "interface": str,
        "state": str,
        "ttl_threshold": int,
    },
)

ShowIpMfibRow = TypedDict(
    "ShowIpMfibRow",
    {
        "accept": list[str],
        "bytes": int,
        "flags": list[str],
        "forward": list[ShowIpMfibRowForwardRow],
        "group": str,
        "packets": int,
        "rpf_failures": int,
        "source": str,
        "table": int | None,
    },
)

ShowIpNeighborConfigRow = TypedDict(
    "ShowIpNeighborConfigRow",
    {
        "age_s": int,
        "delay_s": int,
        "dynamic": int,
        "family": str,
        "incomplete": int,
        "limit": int,
        "not_learned": int,
        "probes": int,
        "reachable_s": int,
        "recycled": int,
        "retransmit_s": float,
        "static": int,
        "when_full": str,
    },
)

ShowIpNeighborCountersRow = TypedDict(
    "ShowIpNeighborCountersRow",
    {
        "interface": str,
        "protocol": str,
        "rx_gratuitous": int,
        "rx_replies": int,
        "rx_requests": int,
        "tx_gratuitous": int,
        "tx_replies": int,
        "tx_requests": int,
    },
)

ShowIpNeighborsRow = TypedDict(
    "ShowIpNeighborsRow",
    {
        "address": str,
        "age_s": float,
        "interface": str,
        "mac": str | None,
        "state": str,
    },
)

ShowIpPmtuRow = TypedDict(
    "ShowIpPmtuRow",
    {
        "destination": str,
        "left_s": int | None,
        "mtu_bytes": int,
        "table": int,
    },
)

ShowIpPuntRedirectRow = TypedDict(
    "ShowIpPuntRedirectRow",
    {
        "interface": str,
        "next_hop": str,
        "received_on": str,
    },
)

ShowIpTableRow = TypedDict(
    "ShowIpTableRow",
    {
        "flow_hash": str,
        "name": str | None,
        "routes": int,
        "table": int,
    },
)

ShowIpfixExporterCollectorsRow = TypedDict(
    "ShowIpfixExporterCollectorsRow",
    {
        "collector": str,
        "format": str,
        "messages": int,
        "path_mtu_bytes": int,
        "records": int,
        "records_lost": int,
        "refused": int,
        "source": str,
    },
)

ShowIpfixExporterStreamsRow = TypedDict(
    "ShowIpfixExporterStreamsRow",
    {
        "collector": str | None,
        "domain": int,
        "error": str | None,
        "sequence": int,
        "source_port": int | None,
        "templates": int,
    },
)

ShowIpfixExporter = TypedDict(
    "ShowIpfixExporter",
    {
        "buffer_full": int,
        "bytes": int,
        "collector": str | None,
        "collectors": list[ShowIpfixExporterCollectorsRow],
        "errors": int,
        "format": str | None,
        "messages": int,
        "path_mtu_bytes": int | None,
        "records": int,
        "records_lost": int,
        "refused": int,
        "source": str | None,
        "streams": list[ShowIpfixExporterStreamsRow],
        "template_interval_s": int | None,
        "templates": int,
    },
)

ShowIpipTunnelRow = TypedDict(
    "ShowIpipTunnelRow",
    {
        "bytes": int,
        "destination": str,
        "interface": str,
        "next_hop": str | None,
        "packets": int,
        "path_mtu_bytes": int | None,
        "reason": str | None,
        "source": str,
        "state": str,
        "table": int,
        "underlay": str | None,
    },
)

ShowL2fibEntriesRow = TypedDict(
    "ShowL2fibEntriesRow",
    {
        "age_minutes": int | None,
        "bvi": bool,
        "domain": int,
        "filter": bool,
        "interface": str | None,
        "learned": bool,
        "mac": str,
        "static": bool,
    },
)

ShowL2fib = TypedDict(
    "ShowL2fib",
    {
        "aged_since_start": int,
        "entries": list[ShowL2fibEntriesRow] | int,
        "entries_at_most": int,
        "learned": int,
        "learned_at_most": int,
        "learned_since_start": int,
        "memory_bytes": int,
        "moved_since_start": int,
        "not_learned_at_a_limit": int,
        "not_shown": NotRequired[int],
    },
)

ShowL2fibEventsEventsRow = TypedDict(
    "ShowL2fibEventsEventsRow",
    {
        "domain": int,
        "event": str,
        "from": str | None,
        "interface": str,
        "mac": str,
        "number": int,
        "time_s": float,
    },
)

ShowL2fibEvents = TypedDict(
    "ShowL2fibEvents",
    {
        "events": list[ShowL2fibEventsEventsRow],
        "last": int | None,
    },
)

ShowL2patchRow = TypedDict(
    "ShowL2patchRow",
    {
        "rx": str,
        "tx": str,
    },
)

ShowL2tpv3Row = TypedDict(
    "ShowL2tpv3Row",
    {
        "bytes": int,
        "destination": str,
        "interface": str,
        "local_cookie": str | None,
        "local_session": int,
        "next_hop": str | None,
        "packets": int,
        "path_mtu_bytes": int | None,
        "previous_cookie": str | None,
        "reason": str | None,
        "remote_cookie": str | None,
        "remote_session": int,
        "source": str,
        "state": str,
        "sublayer": bool,
        "table": int,
        "type": str,
        "underlay": str | None,
    },
)

ShowLacpRowActorState = TypedDict(
    "ShowLacpRowActorState",
    {
        "activity": bool,
        "aggregation": bool,
        "collecting": bool,
        "defaulted": bool,
        "distributing": bool,
        "expired": bool,
        "synchronization": bool,
        "timeout": bool,
    },
)

ShowLacpRowActor = TypedDict(
    "ShowLacpRowActor",
    {
        "key": int,
        "port": int,
        "port_priority": int,
        "state": ShowLacpRowActorState,
        "system": str,
        "system_priority": int,
    },
)

ShowLacpRowPartnerState = TypedDict(
    "ShowLacpRowPartnerState",
    {
        "activity": bool,
        "aggregation": bool,
        "collecting": bool,
        "defaulted": bool,
        "distributing": bool,
        "expired": bool,
        "synchronization": bool,
        "timeout": bool,
    },
)

ShowLacpRowPartner = TypedDict(
    "ShowLacpRowPartner",
    {
        "key": int,
        "port": int,
        "port_priority": int,
        "state": ShowLacpRowPartnerState,
        "system": str,
        "system_priority": int,
    },
)

ShowLacpRow = TypedDict(
    "ShowLacpRow",
    {
        "actor": NotRequired[ShowLacpRowActor],
        "actor_state": NotRequired[str],
        "bond": str,
        "interface": str,
        "key": NotRequired[int],
        "mux": str,
        "note": str,
        "partner": ShowLacpRowPartner | str,
        "partner_state": NotRequired[str],
        "port": NotRequired[int],
        "receive": str,
        "received": NotRequired[int],
        "selected": NotRequired[bool],
        "sent": NotRequired[int],
        "timeouts": NotRequired[int],
    },
)

ShowLcpRow = TypedDict(
    "ShowLcpRow",
    {
        "addresses": int,
        "interface": str,
        "linux_index": int,
        "linux_mtu_bytes": int,
        "linux_name": str,
        "linux_state": str,
        "namespace": str,
        "twin": str,
        "type": str,
    },
)

ShowLcpPuntRow = TypedDict(
    "ShowLcpPuntRow",
    {
        "burst": int,
        "class": str,
        "passed": int,
        "policed": int,
        "rate_pps": int,
    },
)

ShowLcpSyncRow = TypedDict(
    "ShowLcpSyncRow",
    {
        "buffer_bytes": int,
        "changes_read": int,
        "coalesced": int,
        "dumps": int,
        "elsewhere": int,
        "from": str,
        "given": int,
        "lag": int,
        "linux_refused": int,
        "namespace": str,
        "objects": int,
        "overruns": int,
        "refused": int,
        "removed": int,
        "routes": int,
        "to_linux": int,
        "waiting": int,
        "written": int,
    },
)

ShowLispAdjacenciesRow = TypedDict(
    "ShowLispAdjacenciesRow",
    {
        "local_eid": str,
        "remote_eid": str,
        "vni": int,
    },
)

ShowLispEidTableRowLocatorsRow = TypedDict(
    "ShowLispEidTableRowLocatorsRow",
    {
        "address": str,
        "priority": int,
        "weight": int,
    },
)

ShowLispEidTableRow = TypedDict(
    "ShowLispEidTableRow",
    {
        "action": str | None,
        "eid": str,
        "expires_s": int | None,
        "locator_set": str | None,
        "locators": list[ShowLispEidTableRowLocatorsRow],
        "route": bool | None,
        "type": str,
        "vni": int,
    },
)

ShowLispEidTableMapRow = TypedDict(
    "ShowLispEidTableMapRow",
    {
        "interface": str,
        "vni": int,
        "vrf": int | None,
    },
)

ShowLispLocatorSetRow = TypedDict(
    "ShowLispLocatorSetRow",
    {
        "interface": str | None,
        "locator_set": str,
        "priority": int | None,
        "weight": int | None,
    },
)

ShowLispMapResolverRow = TypedDict(
    "ShowLispMapResolverRow",
    {
        "address": str,
        "usable": bool,
    },
)

ShowLispStatisticsRow = TypedDict(
    "ShowLispStatisticsRow",
    {
        "count": int,
        "message": str,
    },
)

ShowLispStatus = TypedDict(
    "ShowLispStatus",
    {
        "configured_mappings": int,
        "header": str,
        "ipv4_locator": str | None,
        "ipv6_locator": str | None,
        "learned_mappings": int,
        "lisp": str,
        "local_eids": int,
        "proxy_itr": str | None,
    },
)

ShowLldpRow = TypedDict(
    "ShowLldpRow",
    {
        "last_heard_s": float | None,
        "last_sent_s": float | None,
        "local_interface": str,
        "peer_chassis_id": str | None,
        "remote_port_id": str | None,
        "status": str,
        "system_name": str | None,
    },
)

ShowLldpInterfacesRowNeighboursRowManagementAddressesRow = TypedDict(
    "ShowLldpInterfacesRowNeighboursRowManagementAddressesRow",
    {
        "address": str,
        "interface": int,
        "oid": str | None,
    },
)

ShowLldpInterfacesRowNeighboursRow = TypedDict(
    "ShowLldpInterfacesRowNeighboursRow",
    {
        "capabilities": list[str] | None,
        "chassis_id": str,
        "chassis_subtype": int,
        "enabled": list[str] | None,
        "left_s": int,
        "management_addresses": list[ShowLldpInterfacesRowNeighboursRowManagementAddressesRow],
        "port_description": str | None,
        "port_id": str,
        "port_subtype": int,
        "port_vlan": int | None,
        "system_description": str | None,
        "system_name": str | None,
        "ttl_s": int,
    },
)

ShowLldpInterfacesRowStatistics = TypedDict(
    "ShowLldpInterfacesRowStatistics",
    {
        "ageouts": int,
        "frames_discarded": int,
        "frames_in": int,
        "frames_out": int,
        "tlvs_discarded": int,
        "tlvs_unrecognized": int,
        "too_many_neighbours": int,
    },
)

ShowLldpInterfacesRow = TypedDict(
    "ShowLldpInterfacesRow",
    {
        "interface": str,
        "neighbours": list[ShowLldpInterfacesRowNeighboursRow],
        "statistics": ShowLldpInterfacesRowStatistics,
    },
)

ShowLldp = TypedDict(
    "ShowLldp",
    {
        "chassis_id": str,
        "interfaces": list[ShowLldpInterfacesRow],
        "system_name": str,
        "ttl_s": int,
        "tx_hold": int,
        "tx_interval_s": int,
    },
)

ShowLoadBalanceRowHopsRow = TypedDict(
    "ShowLoadBalanceRowHopsRow",
    {
        "index": int,
        "interface": str | None,
        "next_hop": str | None,
        "node": str,
        "table": int | None,
        "weight": int,
    },
)

ShowLoadBalanceRow = TypedDict(
    "ShowLoadBalanceRow",
    {
        "buckets": int,
        "family": str,
        "hops": list[ShowLoadBalanceRowHopsRow],
        "index": int | None,
        "routes": int,
    },
)

ShowLoggingRow = TypedDict(
    "ShowLoggingRow",
    {
        "class": str,
        "level": str,
        "message": str,
        "time": str,
    },
)

ShowLoggingConfigurationClassesRow = TypedDict(
    "ShowLoggingConfigurationClassesRow",
    {
        "class": str,
        "level": str,
        "rate_limit_per_s": int,
        "syslog_level": str,
    },
)

ShowLoggingConfiguration = TypedDict(
    "ShowLoggingConfiguration",
    {
        "buffer_messages": int,
        "classes": list[ShowLoggingConfigurationClassesRow],
        "default_level": str,
        "default_rate_limit_per_s": int,
        "default_syslog_level": str,
        "unthrottle_time_s": int,
    },
)

ShowMapCustomerPortsRow = TypedDict(
    "ShowMapCustomerPortsRow",
    {
        "first_port": int,
        "last_port": int,
    },
)

ShowMapCustomer = TypedDict(
    "ShowMapCustomer",
    {
        "domain": int,
        "ipv6_address": str,
        "ports": list[ShowMapCustomerPortsRow],
        "psid": int,
    },
)

ShowMapDomainRow = TypedDict(
    "ShowMapDomainRow",
    {
        "ea_bits": int,
        "index": int,
        "ip4_prefix": str,
        "ip6_prefix": str,
        "ip6_source": str,
        "mode": str,
        "mtu_bytes": int,
        "psid_bits": int,
        "psid_offset": int,
        "rules": int,
        "tag": str | None,
    },
)

ShowMapFragments = TypedDict(
    "ShowMapFragments",
    {
        "cut": str,
        "df": str,
        "icmp_source_address": str,
        "icmpv6_unreachables": str,
        "security_check": str,
        "security_check_of_fragments": str,
        "tcp_mss": int,
        "traffic_class": str,
    },
)

ShowMapInterfaceRow = TypedDict(
    "ShowMapInterfaceRow",
    {
        "encapsulation": bool,
        "interface": str,
        "translation": bool,
    },
)

ShowMapRuleIndexRow = TypedDict(
    "ShowMapRuleIndexRow",
    {
        "ip6_destination": str,
        "psid": int,
    },
)

ShowMapStatsDirectionsRow = TypedDict(
    "ShowMapStatsDirectionsRow",
    {
        "bytes": int,
        "direction": str,
        "packets": int,
    },
)

ShowMapStats = TypedDict(
    "ShowMapStats",
    {
        "directions": list[ShowMapStatsDirectionsRow],
        "domains": int,
        "rules": int,
    },
)

ShowMemifDescriptorsRow = TypedDict(
    "ShowMemifDescriptorsRow",
    {
        "interface": str,
        "length_bytes": int,
        "next": bool,
        "offset_bytes": int,
        "queue": int,
        "region": int,
        "ring": str,
        "slot": int,
    },
)

ShowMemifInterfacesRow = TypedDict(
    "ShowMemifInterfacesRow",
    {
        "connects": int,
        "interface": str,
        "link": str,
        "mode": str,
        "peer": str,
        "reason": str,
        "role": str,
        "zero_copy": bool,
    },
)

ShowMemifRegionsRow = TypedDict(
    "ShowMemifRegionsRow",
    {
        "bytes": int,
        "interface": str,
        "made_by": str,
        "region": int,
    },
)

ShowMemifRingsRow = TypedDict(
    "ShowMemifRingsRow",
    {
        "head": int,
        "interface": str,
        "interrupts": str,
        "queue": int,
        "ring": str,
        "size_descriptors": int,
        "tail": int,
    },
)

ShowMemifSocketsRow = TypedDict(
    "ShowMemifSocketsRow",
    {
        "listens": bool,
        "path": str,
        "socket": int,
    },
)

ShowMemif = TypedDict(
    "ShowMemif",
    {
        "descriptors": NotRequired[list[ShowMemifDescriptorsRow]],
        "interfaces": list[ShowMemifInterfacesRow],
        "regions": NotRequired[list[ShowMemifRegionsRow]],
        "rings": NotRequired[list[ShowMemifRingsRow]],
        "sockets": NotRequired[list[ShowMemifSocketsRow]],
    },
)

ShowMemoryMemoryRow = TypedDict(
    "ShowMemoryMemoryRow",
    {
        "bytes": int,
        "name": str,
        "page_bytes": int | None,
    },
)

ShowMemory = TypedDict(
    "ShowMemory",
    {
        "memory": list[ShowMemoryMemoryRow],
    },
)

ShowMfibSignalsRow = TypedDict(
    "ShowMfibSignalsRow",
    {
        "age_s": float,
        "count": int,
        "group": str,
        "interface": str,
        "source": str,
        "why": str,
    },
)

ShowMldRowGroupsRow = TypedDict(
    "ShowMldRowGroupsRow",
    {
        "group": str,
        "sources": list[str] | None,
    },
)

ShowMldRow = TypedDict(
    "ShowMldRow",
    {
        "groups": list[ShowMldRowGroupsRow],
        "interface": str,
        "not_sent": int,
        "querier": str | None,
        "queries": int,
        "sent": int,
        "version": int,
    },
)

ShowMldConfigRow = TypedDict(
    "ShowMldConfigRow",
    {
        "address": str | None,
        "foreign": int,
        "groups": int,
        "interface": str,
        "mode": str,
        "not_sent": int,
        "querier": str | None,
        "queries_sent": int,
        "records": int,
        "refused": int,
    },
)

ShowMldGroupsRow = TypedDict(
    "ShowMldGroupsRow",
    {
        "ends_s": float,
        "filter": str,
        "group": str,
        "interface": str,
        "sources": list[str],
    },
)

ShowMldProxyDevRow = TypedDict(
    "ShowMldProxyDevRow",
    {
        "groups_joined": int,
        "interfaces": list[str],
        "routes_failed": int,
        "table": int,
        "upstream": str | None,
    },
)

ShowMldTimersRow = TypedDict(
    "ShowMldTimersRow",
    {
        "interface": str,
        "last_member_interval_ms": int,
        "membership_interval_s": int,
        "query_interval_s": int,
        "response_interval_ms": int,
        "robustness": int,
        "version": int,
    },
)

ShowModeRow = TypedDict(
    "ShowModeRow",
    {
        "interface": str,
        "mode": str,
        "with": str,
    },
)

ShowMplsFibRowHopsRow = TypedDict(
    "ShowMplsFibRowHopsRow",
    {
        "index": int,
        "interface": str | None,
        "next_hop": str | None,
        "node": str,
        "table": int | None,
        "weight": int,
    },
)

ShowMplsFibRow = TypedDict(
    "ShowMplsFibRow",
    {
        "best": NotRequired[bool],
        "bottom": str,
        "hops": NotRequired[list[ShowMplsFibRowHopsRow]],
        "label": int,
        "load_balance": NotRequired[int | None],
        "paths": list[str],
        "source": str,
        "states": NotRequired[list[str]],
        "table": int,
    },
)

ShowMplsInterfaceRow = TypedDict(
    "ShowMplsInterfaceRow",
    {
        "interface": str,
        "state": str,
        "table": int | None,
    },
)

ShowMplsTunnelRow = TypedDict(
    "ShowMplsTunnelRow",
    {
        "carries": str,
        "interface": str,
        "paths": list[str],
        "state": str,
    },
)

ShowNat44AddressesAddressesRow = TypedDict(
    "ShowNat44AddressesAddressesRow",
    {
        "first": str,
        "last": str,
        "tenant_vrf": int | None,
    },
)

ShowNat44AddressesInterfacesRow = TypedDict(
    "ShowNat44AddressesInterfacesRow",
    {
        "interface": str,
    },
)

ShowNat44AddressesTwiceNatRow = TypedDict(
    "ShowNat44AddressesTwiceNatRow",
    {
        "address": str,
    },
)

ShowNat44Addresses = TypedDict(
    "ShowNat44Addresses",
    {
        "addresses": list[ShowNat44AddressesAddressesRow],
        "interfaces": list[ShowNat44AddressesInterfacesRow],
        "twice_nat": NotRequired[list[ShowNat44AddressesTwiceNatRow]],
    },
)

ShowNat44BlocksRow = TypedDict(
    "ShowNat44BlocksRow",
    {
        "age_s": int,
        "b4": str | None,
        "first_port": int,
        "idle_s": int,
        "inside": str,
        "last_port": int,
        "outside": str,
        "used": int,
    },
)

ShowNat44HelpersRow = TypedDict(
    "ShowNat44HelpersRow",
    {
        "failed": int,
        "helper": str,
        "opened": int,
        "port": int | None,
        "refused": int,
        "rewritten": int,
        "sessions": int,
    },
)

ShowNat44InterfacesRow = TypedDict(
    "ShowNat44InterfacesRow",
    {
        "interface": str,
        "side": str,
    },
)

ShowNat44MappingsRow = TypedDict(
    "ShowNat44MappingsRow",
    {
        "age_s": int,
        "b4": str | None,
        "idle_s": int,
        "inside": str,
        "outside": str,
        "protocol": str,
        "sessions": int,
    },
)

ShowNat44SessionsRow = TypedDict(
    "ShowNat44SessionsRow",
    {
        "b4": str | None,
        "external": str,
        "idle_s": int,
        "local": str,
        "made_by": str,
        "protocol": str,
        "remote": str,
        "state": str,
    },
)

ShowNat44StaticMappingsRow = TypedDict(
    "ShowNat44StaticMappingsRow",
    {
        "external": str,
        "external_port": int | None,
        "kind": NotRequired[str],
        "local": str,
        "local_port": int | None,
        "out2in_only": NotRequired[bool],
        "probability": NotRequired[int | None],
        "protocol": str,
        "twice_nat": NotRequired[str],
        "vrf": int | None,
    },
)

ShowNat44SubscribersRow = TypedDict(
    "ShowNat44SubscribersRow",
    {
        "b4": str | None,
        "blocks": int,
        "inside": str,
        "mappings": int,
        "paired_with": str | None,
        "sessions": int,
    },
)

ShowNat44Summary = TypedDict(
    "ShowNat44Summary",
    {
        "bindings_at_most": NotRequired[int],
        "forwarding": str,
        "mappings": NotRequired[int],
        "pool_addresses": int,
        "port_blocks": NotRequired[int],
        "resting_ports": NotRequired[int],
        "sessions": int,
        "sessions_at_most": int,
        "sessions_at_once": NotRequired[int],
        "sessions_expired": int,
        "sessions_made": int,
        "state": str,
        "static_mappings": int,
        "subscribers": NotRequired[int],
    },
)

ShowNat64BibRow = TypedDict(
    "ShowNat64BibRow",
    {
        "external": str,
        "local": str,
        "made_by": str,
        "protocol": str,
        "sessions": int,
        "vrf": int | None,
    },
)

ShowNat64Ha = TypedDict(
    "ShowNat64Ha",
    {
        "datagrams_not_sent": int,
        "datagrams_received": int,
        "datagrams_resent": int,
        "datagrams_sent": int,
        "disagreeing": int,
        "duplicates": int,
        "error": str | None,
        "failover": str | None,
        "kept": int,
        "key": str,
        "last_takeover_ago_s": int | None,
        "listener": str | None,
        "malformed": int,
        "missed": int,
        "no_room": int,
        "other_version": int,
        "overflows": int,
        "records_acknowledged": int,
        "records_lost": int,
        "records_received": int,
        "records_sent": int,
        "refused": int,
        "replayed": int,
        "resync_being_received": bool,
        "resync_sent_percent": int | None,
        "resyncs_received": int,
        "resyncs_sent": int,
        "role": str | None,
        "round_trip_us": int | None,
        "sessions_ended": int,
        "sessions_made": int,
        "sessions_refreshed": int,
        "sessions_swept": int,
        "since_s": int | None,
        "state": str,
        "takeovers": int,
        "unauthentic": int,
        "unreadable_records": int,
    },
)

ShowNat64InterfacesRow = TypedDict(
    "ShowNat64InterfacesRow",
    {
        "interface": str,
        "side": str,
    },
)

ShowNat64PoolAddressesRow = TypedDict(
    "ShowNat64PoolAddressesRow",
    {
        "first": str,
        "last": str,
        "tenant_vrf": int | None,
    },
)

ShowNat64PoolInterfacesRow = TypedDict(
    "ShowNat64PoolInterfacesRow",
    {
        "interface": str,
    },
)

ShowNat64Pool = TypedDict(
    "ShowNat64Pool",
    {
        "addresses": list[ShowNat64PoolAddressesRow],
        "interfaces": list[ShowNat64PoolInterfacesRow],
    },
)

ShowNat64PrefixRow = TypedDict(
    "ShowNat64PrefixRow",
    {
        "prefix": str,
        "tenant_vrf": int | None,
    },
)

ShowNat64SessionTableRow = TypedDict(
    "ShowNat64SessionTableRow",
    {
        "external": str,
        "idle_s": int,
        "local": str,
        "protocol": str,
        "remote": str,
        "state": str,
    },
)

ShowNat64Summary = TypedDict(
    "ShowNat64Summary",
    {
        "bindings": int,
        "filtering": str,
        "mss_clamping": int | None,
        "pool_addresses": int,
        "sessions": int,
        "sessions_at_most": int,
        "sessions_expired": int,
        "sessions_made": int,
        "sessions_of_a_subscriber_at_most": int | None,
        "state": str,
        "static_bindings": int,
        "ip6_mtu_bytes": int,
    },
)

ShowNat64TimeoutsRow = TypedDict(
    "ShowNat64TimeoutsRow",
    {
        "of": str,
        "timeout_s": int,
    },
)

ShowNat66BindingsRow = TypedDict(
    "ShowNat66BindingsRow",
    {
        "external": str,
        "local": str,
        "made_by": str,
        "protocol": str,
        "sessions": int,
        "vrf": int | None,
    },
)

ShowNat66InterfacesRow = TypedDict(
    "ShowNat66InterfacesRow",
    {
        "interface": str,
        "side": str,
    },
)

ShowNat66PoolAddressesRow = TypedDict(
    "ShowNat66PoolAddressesRow",
    {
        "first": str,
        "last": str,
        "tenant_vrf": int | None,
    },
)

ShowNat66PoolInterfacesRow = TypedDict(
    "ShowNat66PoolInterfacesRow",
    {
        "interface": str,
    },
)

ShowNat66Pool = TypedDict(
    "ShowNat66Pool",
    {
        "addresses": list[ShowNat66PoolAddressesRow],
        "interfaces": list[ShowNat66PoolInterfacesRow],
    },
)

ShowNat66SessionsRow = TypedDict(
    "ShowNat66SessionsRow",
    {
        "external": str,
        "idle_s": int,
        "local": str,
        "protocol": str,
        "remote": str,
        "state": str,
    },
)

ShowNat66StaticMappingsRow = TypedDict(
    "ShowNat66StaticMappingsRow",
    {
        "external": str,
        "local": str,
        "protocol": str,
        "vrf": int,
    },
)

ShowNat66Summary = TypedDict(
    "ShowNat66Summary",
    {
        "bindings": int,
        "filtering": str,
        "pool_addresses": int,
        "sessions": int,
        "sessions_at_most": int,
        "sessions_expired": int,
        "sessions_made": int,
        "sessions_of_a_subscriber_at_most": int | None,
        "state": str,
        "static_mappings": int,
    },
)

ShowNat66TimeoutsRow = TypedDict(
    "ShowNat66TimeoutsRow",
    {
        "of": str,
        "timeout_s": int,
    },
)

ShowNatHa = TypedDict(
    "ShowNatHa",
    {
        "datagrams_not_sent": int,
        "datagrams_received": int,
        "datagrams_resent": int,
        "datagrams_sent": int,
        "disagreeing": int,
        "duplicates": int,
        "error": str | None,
        "failover": str | None,
        "kept": int,
        "key": str,
        "last_takeover_ago_s": int | None,
        "listener": str | None,
        "malformed": int,
        "missed": int,
        "no_room": int,
        "other_version": int,
        "overflows": int,
        "records_acknowledged": int,
        "records_lost": int,
        "records_received": int,
        "records_sent": int,
        "refused": int,
        "replayed": int,
        "resync_being_received": bool,
        "resync_sent_percent": int | None,
        "resyncs_received": int,
        "resyncs_sent": int,
        "role": str | None,
        "round_trip_us": int | None,
        "sessions_ended": int,
        "sessions_made": int,
        "sessions_refreshed": int,
        "sessions_swept": int,
        "since_s": int | None,
        "state": str,
        "takeovers": int,
        "unauthentic": int,
        "unreadable_records": int,
    },
)

ShowNatLogEventsRow = TypedDict(
    "ShowNatLogEventsRow",
    {
        "event": str,
        "lost": int,
        "made": int,
    },
)

ShowNatLog = TypedDict(
    "ShowNatLog",
    {
        "domain": int | None,
        "events": list[ShowNatLogEventsRow],
        "ipfix": str | None,
        "repeated_notices": int,
        "syslog": str | None,
    },
)

ShowNatMssClamping = TypedDict(
    "ShowNatMssClamping",
    {
        "mss_clamping": int | None,
    },
)

ShowNatTimeoutsRow = TypedDict(
    "ShowNatTimeoutsRow",
    {
        "of": str,
        "timeout_s": int,
    },
)

ShowNodeNodesRowReasonsRow = TypedDict(
    "ShowNodeNodesRowReasonsRow",
    {
        "count": int,
        "reason": str,
        "severity": str,
        "text": str,
    },
)

ShowNodeNodesRow = TypedDict(
    "ShowNodeNodesRow",
    {
        "help": str,
        "id": int,
        "kind": str,
        "name": str,
        "next": list[str],
        "previous": list[str],
        "reasons": list[ShowNodeNodesRowReasonsRow],
    },
)

ShowNodeReasonsRow = TypedDict(
    "ShowNodeReasonsRow",
    {
        "count": int,
        "reason": str,
        "severity": str,
        "text": str,
    },
)

ShowNode = TypedDict(
    "ShowNode",
    {
        "help": NotRequired[str],
        "id": NotRequired[int],
        "kind": NotRequired[str],
        "name": NotRequired[str],
        "next": NotRequired[list[str]],
        "nodes": NotRequired[list[ShowNodeNodesRow]],
        "previous": NotRequired[list[str]],
        "reasons": NotRequired[list[ShowNodeReasonsRow]],
    },
)

ShowNpt66AddressRow = TypedDict(
    "ShowNpt66AddressRow",
    {
        "address": str | None,
        "interface": str,
        "side": str,
    },
)

ShowNpt66BindingsRow = TypedDict(
    "ShowNpt66BindingsRow",
    {
        "external": str,
        "interface": str,
        "internal": str,
    },
)

ShowOutaclRow = TypedDict(
    "ShowOutaclRow",
    {
        "interface": str,
        "ip4_table": int | None,
        "ip6_table": int | None,
        "l2_table": int | None,
    },
)

ShowPacketGeneratorRow = TypedDict(
    "ShowPacketGeneratorRow",
    {
        "interface": str,
        "limit": int | None,
        "name": str,
        "no_buffer": int,
        "node": str,
        "packets": int,
        "rate_pps": float | None,
        "sent": int,
        "size": str,
        "state": str,
    },
)

ShowPcapRow = TypedDict(
    "ShowPcapRow",
    {
        "interface": str,
        "loop": bool,
        "rx_file": str,
        "rx_packets": int,
        "rx_packets_in_file": int,
        "state": str,
        "tx_file": str,
        "tx_packets_written": int,
    },
)

ShowPluginsRow = TypedDict(
    "ShowPluginsRow",
    {
        "description": str,
        "name": str,
        "version": str,
    },
)

ShowPolicerRow = TypedDict(
    "ShowPolicerRow",
    {
        "action": str,
        "bytes": int,
        "cb": int,
        "cir": int,
        "color_aware": bool,
        "eb": int,
        "eir": int,
        "name": str,
        "packets": int,
        "result": str,
        "type": str,
        "unit": str,
    },
)

ShowPolicerClassifyRow = TypedDict(
    "ShowPolicerClassifyRow",
    {
        "acl": int | None,
        "direction": str,
        "interface": str,
        "ip4_table": int | None,
        "ip6_table": int | None,
        "l2_table": int | None,
        "policer": str | None,
    },
)

ShowPolicerInterfaceRow = TypedDict(
    "ShowPolicerInterfaceRow",
    {
        "direction": str,
        "interface": str,
        "policer": str,
    },
)

ShowPolicerSubscriberRow = TypedDict(
    "ShowPolicerSubscriberRow",
    {
        "conform": NotRequired[int],
        "conform_bytes": NotRequired[int],
        "direction": NotRequired[str],
        "each": NotRequired[int],
        "exceed": NotRequired[int],
        "exceed_bytes": NotRequired[int],
        "policer": str,
        "prefix": NotRequired[str],
        "subscriber": NotRequired[str],
        "subscribers": NotRequired[int],
        "unmetered": NotRequired[int],
        "upload": NotRequired[str],
        "violate": NotRequired[int],
        "violate_bytes": NotRequired[int],
    },
)

ShowProm = TypedDict(
    "ShowProm",
    {
        "accepted": int,
        "address": str,
        "all_stats": bool,
        "answers": int,
        "bytes": int,
        "clients": int,
        "control_thread_ms": float,
        "elapsed_ms": float,
        "late": int,
        "longest_turn_ms": float,
        "names": str,
        "samples": int,
        "scrapes": int,
        "turned_away": int,
    },
)

ShowQosEgressMapRow = TypedDict(
    "ShowQosEgressMapRow",
    {
        "first": int,
        "last": int,
        "map": int,
        "out": int,
        "source": str,
    },
)

ShowQosMarkRow = TypedDict(
    "ShowQosMarkRow",
    {
        "header": str,
        "interface": str,
        "map": int,
    },
)

ShowQosRecordRow = TypedDict(
    "ShowQosRecordRow",
    {
        "interface": str,
        "source": str,
    },
)

ShowQosStoreRow = TypedDict(
    "ShowQosStoreRow",
    {
        "interface": str,
        "source": str,
        "value": int,
    },
)

ShowRunningConfig = TypedDict(
    "ShowRunningConfig",
    {
        "commands": list[str],
        "document": NotRequired[dict[str, Any]],
    },
)

ShowRuntimeThreadsRowLongPassesRow = TypedDict(
    "ShowRuntimeThreadsRowLongPassesRow",
    {
        "count": int,
        "from_us": int,
    },
)

ShowRuntimeThreadsRowLongWorkerCallsRow = TypedDict(
    "ShowRuntimeThreadsRowLongWorkerCallsRow",
    {
        "count": int,
        "from_us": int,
    },
)

ShowRuntimeThreadsRowNodesRow = TypedDict(
    "ShowRuntimeThreadsRowNodesRow",
    {
        "calls": int,
        "calls_in_block_driver": int,
        "clocks": int,
        "clocks_per_packet": float | None,
        "max_clocks": int,
        "max_vectors": int,
        "name": str,
        "state": str,
        "suspends": int,
        "vectors": int,
        "vectors_per_call": float | None,
    },
)

ShowRuntimeThreadsRow = TypedDict(
    "ShowRuntimeThreadsRow",
    {
        "core": int | None,
        "elapsed_s": float,
        "events_lost": int,
        "id": int,
        "internal_vectors_per_call": float,
        "long_passes": list[ShowRuntimeThreadsRowLongPassesRow],
        "long_worker_calls": list[ShowRuntimeThreadsRowLongWorkerCallsRow],
        "loops_per_s": float,
        "name": str,
        "nodes": list[ShowRuntimeThreadsRowNodesRow],
        "packets_without_vector": int,
        "passes": int,
        "sleeps": int,
        "vector_rate_drop": float,
        "vector_rate_in": float,
        "vector_rate_out": float,
        "vector_rate_punt": float,
        "worker_call_us": float,
        "worker_calls": int,
    },
)

ShowRuntime = TypedDict(
    "ShowRuntime",
    {
        "threads": list[ShowRuntimeThreadsRow],
    },
)

ShowSflowCollectorsRow = TypedDict(
    "ShowSflowCollectorsRow",
    {
        "collector": str,
        "datagrams": int,
        "error": str | None,
        "not_sent": int,
        "refused": int,
        "source": str,
    },
)

ShowSflowInterfacesRow = TypedDict(
    "ShowSflowInterfacesRow",
    {
        "direction": str,
        "interface": str,
        "packets": int,
        "samples_lost": int,
    },
)

ShowSflow = TypedDict(
    "ShowSflow",
    {
        "agent": str | None,
        "collectors": list[ShowSflowCollectorsRow],
        "counter_samples": int,
        "datagrams": int,
        "drop_monitoring": str,
        "drop_notifications": int,
        "drop_notifications_per_second": int,
        "drops_not_notified": int,
        "flow_samples": int,
        "header_bytes": int,
        "interfaces": list[ShowSflowInterfacesRow],
        "packets_per_sample": int,
        "polling_interval_s": int,
        "sub_agent": int,
    },
)

ShowShaperRow = TypedDict(
    "ShowShaperRow",
    {
        "burst_bytes": int,
        "bytes": int,
        "ceil": str,
        "dropped": int,
        "flows": int,
        "marked": int,
        "name": str,
        "p50_us": int,
        "p99_us": int,
        "packets": int,
        "parent": str,
        "rate": str,
        "waiting": int,
        "waiting_bytes": int,
    },
)

ShowShaperBuffersRow = TypedDict(
    "ShowShaperBuffersRow",
    {
        "most": int,
        "used": int,
    },
)

ShowShaperInterfaceRow = TypedDict(
    "ShowShaperInterfaceRow",
    {
        "interface": str,
        "shaper": str,
        "subscribers_by": str,
    },
)

ShowShaperSubscribersRow = TypedDict(
    "ShowShaperSubscribersRow",
    {
        "addresses": str,
        "bytes": int,
        "direction": str,
        "dropped": int,
        "flows": int,
        "marked": int,
        "p50_us": int,
        "p99_us": int,
        "packets": int,
        "parent": str,
        "profile": str,
        "subscriber": str,
        "waiting": int,
        "waiting_bytes": int,
    },
)

ShowShaperTopRow = TypedDict(
    "ShowShaperTopRow",
    {
        "addresses": str,
        "bytes": int,
        "direction": str,
        "dropped": int,
        "flows": int,
        "marked": int,
        "p50_us": int,
        "p99_us": int,
        "packets": int,
        "parent": str,
        "profile": str,
        "subscriber": str,
        "waiting": int,
        "waiting_bytes": int,
    },
)

ShowSiitMappingsRow = TypedDict(
    "ShowSiitMappingsRow",
    {
        "hosts": str,
        "ip4": str,
        "ip6": str,
    },
)

ShowSiitPrefixesRow = TypedDict(
    "ShowSiitPrefixesRow",
    {
        "hosts": str,
        "prefix": str,
    },
)

ShowSiit = TypedDict(
    "ShowSiit",
    {
        "mappings": list[ShowSiitMappingsRow],
        "prefixes": list[ShowSiitPrefixesRow],
        "ip6_mtu_bytes": int,
    },
)

ShowSiitAddressRow = TypedDict(
    "ShowSiitAddressRow",
    {
        "address": str,
    },
)

ShowSrEncapsHopLimitRow = TypedDict(
    "ShowSrEncapsHopLimitRow",
    {
        "hop_limit": str,
        "of_this_router": bool | None,
        "source_address": str | None,
    },
)

ShowSrEncapsSourceAddrRow = TypedDict(
    "ShowSrEncapsSourceAddrRow",
    {
        "hop_limit": str,
        "of_this_router": bool | None,
        "source_address": str | None,
    },
)

ShowSrHmacRow = TypedDict(
    "ShowSrHmacRow",
    {
        "algorithm": str,
        "key": int,
        "text": str,
    },
)

ShowSrHmacPolicyRow = TypedDict(
    "ShowSrHmacPolicyRow",
    {
        "hmac": str,
        "interface": str,
    },
)

ShowSrL2TunnelsRowGroupsRow = TypedDict(
    "ShowSrL2TunnelsRowGroupsRow",
    {
        "flood": str,
        "group": int,
    },
)

ShowSrL2TunnelsRow = TypedDict(
    "ShowSrL2TunnelsRow",
    {
        "flood": str | None,
        "groups": list[ShowSrL2TunnelsRowGroupsRow],
        "interface": str,
        "state": str,
        "unicast": str | None,
    },
)

ShowSrLocalsidsRow = TypedDict(
    "ShowSrLocalsidsRow",
    {
        "bad_bytes": int,
        "bad_packets": int,
        "behavior": str,
        "bytes": int,
        "packets": int,
        "sid": str,
        "table": int,
    },
)

ShowSrMplsPoliciesRow = TypedDict(
    "ShowSrMplsPoliciesRow",
    {
        "bsid": int,
        "paths": list[str],
    },
)

ShowSrMplsSteeringPoliciesRow = TypedDict(
    "ShowSrMplsSteeringPoliciesRow",
    {
        "bsid": int,
        "prefix": str,
        "table": int | None,
    },
)

ShowSrOamRow = TypedDict(
    "ShowSrOamRow",
    {
        "interface": str,
        "sid": str,
        "text": str,
        "time_s": float,
    },
)

ShowSrPoliciesListsRow = TypedDict(
    "ShowSrPoliciesListsRow",
    {
        "bytes": int,
        "list": int,
        "packets": int,
        "path_mtu_bytes": int | None,
        "path_mtu_left_s": int | None,
        "policy": str,
        "segments": list[str],
        "weight": int,
    },
)

ShowSrPoliciesPoliciesRow = TypedDict(
    "ShowSrPoliciesPoliciesRow",
    {
        "behavior": str,
        "bsid": str,
        "bytes": int,
        "packets": int,
        "source": str | None,
        "table": int,
    },
)

ShowSrPolicies = TypedDict(
    "ShowSrPolicies",
    {
        "lists": list[ShowSrPoliciesListsRow],
        "policies": list[ShowSrPoliciesPoliciesRow],
    },
)

ShowSrProxiesRow = TypedDict(
    "ShowSrProxiesRow",
    {
        "back_bad_bytes": int,
        "back_bad_packets": int,
        "back_by": str,
        "back_bytes": int,
        "back_packets": int,
        "behavior": str,
        "sid": str,
        "to_bad_packets": int,
        "to_bytes": int,
        "to_packets": int,
    },
)

ShowSrSteeringPoliciesRow = TypedDict(
    "ShowSrSteeringPoliciesRow",
    {
        "bsid": str,
        "steered": str,
    },
)

ShowSrVlanTablesRow = TypedDict(
    "ShowSrVlanTablesRow",
    {
        "inner_vlan": str,
        "interface": str,
        "table": int,
        "vlan": str,
    },
)

ShowSubscriptionsRowFieldsRow = TypedDict(
    "ShowSubscriptionsRowFieldsRow",
    {
        "help": str,
        "name": str,
    },
)

ShowSubscriptionsRow = TypedDict(
    "ShowSubscriptionsRow",
    {
        "event": str,
        "fields": list[ShowSubscriptionsRowFieldsRow],
        "help": str,
        "published": int,
        "subscribers": int,
        "waiting": int,
    },
)

ShowSyslogSender = TypedDict(
    "ShowSyslogSender",
    {
        "buffer_full": int,
        "bytes": int,
        "collector": str | None,
        "error": str | None,
        "errors": int,
        "filter": str,
        "filtered": int,
        "lost": int,
        "message_bytes_at_most": int | None,
        "messages": int,
        "refused": int,
        "source": str | None,
        "too_long": int,
    },
)

ShowTapRow = TypedDict(
    "ShowTapRow",
    {
        "linux_mac": str,
        "linux_mtu_bytes": int,
        "linux_name": str,
        "linux_state": str,
        "name": str,
        "namespace": str,
        "rx_queues": int,
    },
)

ShowTeibRow = TypedDict(
    "ShowTeibRow",
    {
        "interface": str,
        "nh": str,
        "nh_table_id": int,
        "peer": str,
    },
)

ShowThreadsThreadsRow = TypedDict(
    "ShowThreadsThreadsRow",
    {
        "id": int,
        "lcore": int | None,
        "lwp": int | None,
        "name": str,
        "passes": int | None,
        "sleeps": int | None,
        "state": str,
        "type": str,
    },
)

ShowThreads = TypedDict(
    "ShowThreads",
    {
        "threads": list[ShowThreadsThreadsRow],
    },
)

ShowTraceThreadsRowPacketsRowNodesRow = TypedDict(
    "ShowTraceThreadsRowPacketsRowNodesRow",
    {
        "bytes": int,
        "data": str,
        "next": str | None,
        "node": str,
        "rx": str,
        "text": str,
        "time_s": float,
    },
)

ShowTraceThreadsRowPacketsRow = TypedDict(
    "ShowTraceThreadsRowPacketsRow",
    {
        "from": str | None,
        "nodes": list[ShowTraceThreadsRowPacketsRowNodesRow],
        "packet": int,
    },
)

ShowTraceThreadsRow = TypedDict(
    "ShowTraceThreadsRow",
    {
        "cut": int,
        "id": int,
        "name": str,
        "packets": list[ShowTraceThreadsRowPacketsRow],
    },
)

ShowTrace = TypedDict(
    "ShowTrace",
    {
        "threads": list[ShowTraceThreadsRow],
    },
)

ShowUdpDecapRow = TypedDict(
    "ShowUdpDecapRow",
    {
        "contents": str,
        "outer": str,
        "port": int,
    },
)

ShowUdpEncapRow = TypedDict(
    "ShowUdpEncapRow",
    {
        "bytes": int,
        "destination": str,
        "destination_port": int,
        "id": int,
        "interface": str,
        "packets": int,
        "path_mtu_bytes": int | None,
        "source": str,
        "source_port": int | None,
        "table": int,
        "underlay": str,
    },
)

ShowUrpfRow = TypedDict(
    "ShowUrpfRow",
    {
        "default_route": str,
        "direction": str,
        "family": str,
        "interface": str,
        "mode": str,
        "table": int | None,
    },
)

ShowUrpfChecksRow = TypedDict(
    "ShowUrpfChecksRow",
    {
        "default_route": str,
        "direction": str,
        "family": str,
        "interface": str,
        "mode": str,
        "table": int | None,
    },
)

ShowUrpfExemptRow = TypedDict(
    "ShowUrpfExemptRow",
    {
        "exempt": str,
        "table": int | None,
    },
)

ShowUrpf = TypedDict(
    "ShowUrpf",
    {
        "checks": list[ShowUrpfChecksRow],
        "exempt": list[ShowUrpfExemptRow],
    },
)

ShowVersion = TypedDict(
    "ShowVersion",
    {
        "commit": str | None,
        "date": str | None,
        "features": list[str],
        "kernel": str,
        "name": str,
        "process": int,
        "profile": str,
        "refused_at_start": int,
        "target": str,
        "version": str,
    },
)

ShowVlanRow = TypedDict(
    "ShowVlanRow",
    {
        "input": str,
        "interface": str,
        "parent": str,
        "tag_rewrite": str,
        "takes": str,
    },
)

ShowVrrpVrRow = TypedDict(
    "ShowVrrpVrRow",
    {
        "accept_mode": bool,
        "addresses": list[str],
        "became_master": int,
        "configured_priority": int,
        "family": str,
        "heard_from": str | None,
        "heard_priority": int | None,
        "interface": str,
        "interval_cs": int,
        "master_interval_cs": int,
        "other_addresses": int,
        "preempt": bool,
        "priority": int,
        "received": int,
        "sent": int,
        "since_s": float,
        "started": bool,
        "state": str,
        "unicast": bool,
        "virtual_mac": str,
        "vr_id": int,
    },
)

ShowVxlanGpeTunnelRow = TypedDict(
    "ShowVxlanGpeTunnelRow",
    {
        "bytes": int,
        "destination": str | None,
        "interface": str,
        "packets": int,
        "path_mtu_bytes": int | None,
        "ports": str | None,
        "reason": str | None,
        "source": str,
        "state": str,
        "table": int,
        "underlay": str | None,
        "vni": int | None,
    },
)

ShowVxlanInterfaceRowPathMtusRow = TypedDict(
    "ShowVxlanInterfaceRowPathMtusRow",
    {
        "mtu_bytes": int,
        "vtep": str,
    },
)

ShowVxlanInterfaceRow = TypedDict(
    "ShowVxlanInterfaceRow",
    {
        "flood_list": list[str],
        "interface": str,
        "path_mtus": list[ShowVxlanInterfaceRowPathMtusRow],
        "source": str,
        "state": str,
        "stations": int,
        "table": int,
        "vni": int | None,
    },
)

ShowVxlanTunnelRow = TypedDict(
    "ShowVxlanTunnelRow",
    {
        "bytes": int,
        "destination": str | None,
        "interface": str,
        "packets": int,
        "path_mtu_bytes": int | None,
        "ports": str | None,
        "reason": str | None,
        "source": str,
        "state": str,
        "table": int,
        "underlay": str | None,
        "vni": int | None,
    },
)

ShowWorkersWaiting = TypedDict(
    "ShowWorkersWaiting",
    {
        "retired": int,
        "retired_max": int,
        "stretches": int,
        "stretches_max": int,
        "worker_calls": int,
        "worker_calls_max": int,
    },
)

ShowWorkersWorkersRow = TypedDict(
    "ShowWorkersWorkersRow",
    {
        "activity": str,
        "core": int | None,
        "idle_clocks": int,
        "internal_calls": int,
        "internal_packets": int,
        "longest_stall_s": float,
        "name": str,
        "node": str | None,
        "node_clocks": int,
        "passes": int,
        "sleeps": int,
        "stalled_s": float | None,
        "stalls": int,
        "state": str,
        "worker": int,
        "worker_calls_waiting": int,
    },
)

ShowWorkers = TypedDict(
    "ShowWorkers",
    {
        "clocks_per_s": float,
        "now_ns": int,
        "stall_timeout_ms": int,
        "waiting": ShowWorkersWaiting,
        "workers": list[ShowWorkersWorkersRow],
    },
)

SrLocalsidAddressArgumentInterfaceRow = TypedDict(
    "SrLocalsidAddressArgumentInterfaceRow",
    {
        "interface": str,
        "next_hop": str,
    },
)

SrLocalsidAddressArgumentFromRow = TypedDict(
    "SrLocalsidAddressArgumentFromRow",
    {
        "source": str,
        "by": str,
    },
)

SrLocalsidAddressArgumentNextRow = TypedDict(
    "SrLocalsidAddressArgumentNextRow",
    {
        "segment": str,
    },
)

SrLocalsidReplaceAddressArgumentInterfaceRow = TypedDict(
    "SrLocalsidReplaceAddressArgumentInterfaceRow",
    {
        "interface": str,
        "next_hop": str,
    },
)

SrLocalsidReplaceAddressArgumentFromRow = TypedDict(
    "SrLocalsidReplaceAddressArgumentFromRow",
    {
        "source": str,
        "by": str,
    },
)

SrLocalsidReplaceAddressArgumentNextRow = TypedDict(
    "SrLocalsidReplaceAddressArgumentNextRow",
    {
        "segment": str,
    },
)

SrMplsPolicyAddBsidArgumentNextRow = TypedDict(
    "SrMplsPolicyAddBsidArgumentNextRow",
    {
        "label": str,
    },
)

SrMplsPolicyModBsidArgumentNextRow = TypedDict(
    "SrMplsPolicyModBsidArgumentNextRow",
    {
        "label": str,
    },
)

SrPolicyAddBsidArgumentNextRow = TypedDict(
    "SrPolicyAddBsidArgumentNextRow",
    {
        "sid": str,
    },
)

SrPolicyModBsidArgumentNextRow = TypedDict(
    "SrPolicyModBsidArgumentNextRow",
    {
        "sid": str,
    },
)

class Methods:
    def document(
        self,
        *,
        do: Literal["check", "diff", "apply"],
        text: str,
        language: Literal["yaml", "commands"] | None = None,
        message: str | None = None,
        confirm_s: int | str | None = None,
        if_generation: str | None = None,
    ) -> Document: ...
    def abf_attach(
        self,
        *,
        policy: int | str,
        interface: str,
        ip4: bool | None = None,
        ip6: bool | None = None,
        del_: bool | None = None,
        priority: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def abf_policy_add_id(
        self,
        *,
        id: int | str,
        acl: int | str | None = None,
        src: str | None = None,
        dst: str | None = None,
        proto: int | Literal["tcp", "udp", "icmp", "icmp6"] | None = None,
        sport: str | None = None,
        dport: str | None = None,
        dscp: int | str | None = None,
        drop_if_unusable: bool | None = None,
        via: list[AbfPolicyAddIdArgumentViaRow] | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def abf_policy_del_id(
        self,
        *,
        id: int | str,
        via: list[AbfPolicyDelIdArgumentViaRow] | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def adjacency_counters(
        self,
        *,
        enable: bool | None = None,
        disable: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def bfd_dplane_close(self, *, if_generation: str | None = None) -> Any: ...
    def bfd_dplane_connect(
        self,
        *,
        address: str | None = None,
        port: int | str | None = None,
        namespace: str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def bfd_dplane_connect_unix(self, *, socket: str, if_generation: str | None = None) -> Any: ...
    def bfd_dplane_listen(
        self,
        *,
        address: str | None = None,
        port: int | str | None = None,
        namespace: str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def bfd_dplane_listen_unix(self, *, socket: str, if_generation: str | None = None) -> Any: ...
    def bfd_key_del_conf_key_id(self, *, conf_key_id: int | str, if_generation: str | None = None) -> Any: ...
    def bfd_key_set(
        self,
        *,
        conf_key_id: int | str,
        type: Literal["keyed-sha1", "meticulous-keyed-sha1", "keyed-md5", "meticulous-keyed-md5"],
        secret: str,
        if_generation: str | None = None,
    ) -> Any: ...
    def bfd_udp_bond_add(
        self,
        *,
        bond: str,
        local_addr: str,
        peer_addr: str,
        desired_min_tx: int | str,
        required_min_rx: int | str,
        detect_mult: int | str,
        conf_key_id: int | str | None = None,
        bfd_key_id: int | str | None = None,
        group_mac: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def bfd_udp_bond_del(
        self,
        *,
        bond: str,
        local_addr: str,
        peer_addr: str,
        if_generation: str | None = None,
    ) -> Any: ...
    def bfd_udp_bond_mod(
        self,
        *,
        bond: str,
        local_addr: str,
        peer_addr: str,
        desired_min_tx: int | str,
        required_min_rx: int | str,
        detect_mult: int | str,
        if_generation: str | None = None,
    ) -> Any: ...
    def bfd_udp_bond_set_flags(
        self,
        *,
        bond: str,
        state: Literal["up", "down"],
        local_addr: str,
        peer_addr: str,
        if_generation: str | None = None,
    ) -> Any: ...
    def bfd_udp_echo_source_del(self, *, if_generation: str | None = None) -> Any: ...
    def bfd_udp_echo_source_set_interface(
        self,
        *,
        interface: str,
        if_generation: str | None = None,
    ) -> Any: ...
    def bfd_udp_session_add(
        self,
        *,
        local_addr: str,
        peer_addr: str,
        desired_min_tx: int | str,
        required_min_rx: int | str,
        detect_mult: int | str,
        interface: str | None = None,
        multihop: bool | None = None,
        conf_key_id: int | str | None = None,
        bfd_key_id: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def bfd_udp_session_auth_activate(
        self,
        *,
        local_addr: str,
        peer_addr: str,
        conf_key_id: int | str,
        bfd_key_id: int | str,
        interface: str | None = None,
        multihop: bool | None = None,
        delayed: Literal["yes", "no"] | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def bfd_udp_session_auth_deactivate(
        self,
        *,
        local_addr: str,
        peer_addr: str,
        interface: str | None = None,
        multihop: bool | None = None,
        delayed: Literal["yes", "no"] | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def bfd_udp_session_del(
        self,
        *,
        local_addr: str,
        peer_addr: str,
        interface: str | None = None,
        multihop: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def bfd_udp_session_mod(
        self,
        *,
        local_addr: str,
        peer_addr: str,
        desired_min_tx: int | str,
        required_min_rx: int | str,
        detect_mult: int | str,
        interface: str | None = None,
        multihop: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def bfd_udp_session_set_flags(
        self,
        *,
        state: Literal["up", "down"],
        local_addr: str,
        peer_addr: str,
        interface: str | None = None,
        multihop: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def bond_add(
        self,
        *,
        bond: str,
        interface: str,
        passive: bool | None = None,
        long_timeout: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def bond_del(self, *, interface: str, if_generation: str | None = None) -> Any: ...
    def classify_filter(
        self,
        *,
        rule: str,
        pcap: bool | None = None,
        trace: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def classify_filter_del(
        self,
        *,
        pcap: bool | None = None,
        trace: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def classify_session_acl_hit_next(
        self,
        *,
        action: Literal["permit", "deny"],
        table: int | str,
        match: str,
        fib4: int | str | None = None,
        fib6: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def classify_session_action(
        self,
        *,
        table: int | str,
        match: str,
        fib4: int | str | None = None,
        fib6: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def classify_session_del_table_index(
        self,
        *,
        table: int | str,
        match: str,
        if_generation: str | None = None,
    ) -> Any: ...
    def classify_session_policer_hit_next(
        self,
        *,
        policer: str,
        table: int | str,
        match: str,
        color: Literal["conform-color", "exceed-color"] | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def classify_table(
        self,
        *,
        mask: str,
        table: int | str | None = None,
        miss: Literal["permit", "deny"] | None = None,
        next: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def classify_table_del_table(self, *, table: int | str, if_generation: str | None = None) -> Any: ...
    def clear_acl_plugin_sessions(
        self,
        *,
        interface: str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def clear_counters(self, *, if_generation: str | None = None) -> Any: ...
    def clear_dhcpv6_proxy_prefixes(
        self,
        *,
        prefix: str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def clear_errors(self, *, if_generation: str | None = None) -> Any: ...
    def clear_hardware_interfaces(self, *, if_generation: str | None = None) -> Any: ...
    def clear_igmp_int(self, *, interface: str, if_generation: str | None = None) -> Any: ...
    def clear_interface_tag(self, *, interface: str, if_generation: str | None = None) -> Any: ...
    def clear_interfaces(self, *, if_generation: str | None = None) -> Any: ...
    def clear_ip4_neighbors(
        self,
        *,
        interface: str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def clear_ip6_neighbor(
        self,
        *,
        interface: str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def clear_ip6_neighbors(
        self,
        *,
        interface: str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def clear_ip_neighbor_counters(
        self,
        *,
        interface: str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def clear_ip_neighbors(
        self,
        *,
        interface: str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def clear_ip_pmtu(self, *, if_generation: str | None = None) -> Any: ...
    def clear_l2fib(self, *, if_generation: str | None = None) -> Any: ...
    def clear_logging(self, *, if_generation: str | None = None) -> Any: ...
    def clear_mld_int(self, *, interface: str, if_generation: str | None = None) -> Any: ...
    def clear_nat44_sessions(self, *, if_generation: str | None = None) -> Any: ...
    def clear_nat64_sessions(self, *, if_generation: str | None = None) -> Any: ...
    def clear_nat66_sessions(self, *, if_generation: str | None = None) -> Any: ...
    def clear_node_counters(self, *, if_generation: str | None = None) -> Any: ...
    def clear_runtime(self, *, if_generation: str | None = None) -> Any: ...
    def clear_sr_localsid_counters(self, *, if_generation: str | None = None) -> Any: ...
    def clear_sr_oam(self, *, if_generation: str | None = None) -> Any: ...
    def clear_sr_pmtu(self, *, if_generation: str | None = None) -> Any: ...
    def clear_trace(self, *, if_generation: str | None = None) -> Any: ...
    def comment(self, *, text: str | None = None, if_generation: str | None = None) -> Any: ...
    def configuration_apply(
        self,
        *,
        file: str,
        confirm: str | None = None,
        message: str | None = None,
        generation: str | None = None,
        format: Literal["commands", "yaml"] | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def configuration_check(
        self,
        *,
        file: str,
        format: Literal["commands", "yaml"] | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def configuration_confirm(self, *, if_generation: str | None = None) -> Any: ...
    def configuration_diff(
        self,
        *,
        file: str,
        format: Literal["commands", "yaml"] | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def configuration_diff_version(
        self,
        *,
        version: int | str,
        other: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def configuration_history(self, *, if_generation: str | None = None) -> Any: ...
    def configuration_rollback(
        self,
        *,
        version: int | str | None = None,
        confirm: str | None = None,
        message: str | None = None,
        generation: str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def configuration_save(self, *, message: str | None = None, if_generation: str | None = None) -> Any: ...
    def configuration_show_version(
        self,
        *,
        version: int | str,
        secrets: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def cop_interface(
        self,
        *,
        interface: str,
        disable: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def cop_whitelist(
        self,
        *,
        interface: str,
        ip4: bool | None = None,
        ip6: bool | None = None,
        fib_id: int | str | None = None,
        disable: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def create_6rd_tunnel_ip6_pfx(
        self,
        *,
        ip6_pfx: str,
        ip4_pfx: str,
        ip4_src: str,
        br: str | None = None,
        tbl_id: int | str | None = None,
        ip4_table_id: int | str | None = None,
        security_check: bool | None = None,
        sec: bool | None = None,
        instance: int | str | None = None,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def create_bond_mode(
        self,
        *,
        mode: Literal["lacp", "xor", "active-backup", "round-robin", "broadcast"],
        balance: Literal["l2", "l23", "l34"] | None = None,
        hw_addr: str | None = None,
        number: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def create_bridge_domain(
        self,
        *,
        domain: int | str,
        learn: int | str | None = None,
        forward: int | str | None = None,
        flood: int | str | None = None,
        uu_flood: int | str | None = None,
        arp_term: int | str | None = None,
        arp_ufwd: int | str | None = None,
        mac_age: int | str | None = None,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def create_geneve_tunnel(
        self,
        *,
        local: str,
        remote: str,
        vni: int | str,
        instance: int | str | None = None,
        table: int | str | None = None,
        l2: bool | None = None,
        node: str | None = None,
        l3_mode: bool | None = None,
        local_port: int | str | None = None,
        remote_port: int | str | None = None,
        zero_udp6_checksum: bool | None = None,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def create_gre_tunnel_src(
        self,
        *,
        src: str,
        dst: str | None = None,
        multipoint: bool | None = None,
        instance: int | str | None = None,
        outer_table_id: int | str | None = None,
        teb: bool | None = None,
        erspan: int | str | None = None,
        type_iii: bool | None = None,
        key: int | str | None = None,
        ttl: int | str | None = None,
        dscp: int | str | None = None,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def create_host_interface(
        self,
        *,
        linux_name: str,
        num_rx_queues: int | str | None = None,
        num_tx_queues: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def create_interface_af_xdp(
        self,
        *,
        linux_name: str,
        name: str | None = None,
        queues: int | str | None = None,
        frames: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def create_interface_memif(
        self,
        *,
        id: int | str,
        socket_id: int | str | None = None,
        master: bool | None = None,
        slave: bool | None = None,
        mode: Literal["ethernet", "ip"] | None = None,
        ring_size: int | str | None = None,
        buffer_size: int | str | None = None,
        rx_queues: int | str | None = None,
        tx_queues: int | str | None = None,
        zero_copy: bool | None = None,
        secret: str | None = None,
        hw_addr: str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def create_ipip_tunnel_src(
        self,
        *,
        src: str,
        dst: str | None = None,
        multipoint: bool | None = None,
        instance: int | str | None = None,
        outer_table_id: int | str | None = None,
        ttl: int | str | None = None,
        dscp: int | str | None = None,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def create_l2tpv3_tunnel_client_address(
        self,
        *,
        client_address: str,
        our_address: str,
        local_cookie: str | None = None,
        remote_cookie: str | None = None,
        cookie_bytes: Literal["0", "4", "8"] | None = None,
        local_session_id: int | str | None = None,
        remote_session_id: int | str | None = None,
        l2_sublayer_present: bool | None = None,
        encap_vrf_id: int | str | None = None,
        instance: int | str | None = None,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def create_loopback_interface(
        self,
        *,
        mac: str | None = None,
        instance: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def create_memif_socket_id(
        self,
        *,
        id: int | str,
        filename: str,
        if_generation: str | None = None,
    ) -> Any: ...
    def create_mpls_tunnel(
        self,
        *,
        l2_only: bool | None = None,
        control_word: bool | None = None,
        mac: str | None = None,
        instance: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def create_packet_generator_interface(self, *, name: str, if_generation: str | None = None) -> Any: ...
    def create_pcap(
        self,
        *,
        id: int | str,
        rx: str | None = None,
        tx: str | None = None,
        loop: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def create_sr_l2_tunnel(
        self,
        *,
        unicast_bsid: str | None = None,
        flood_bsid: str | None = None,
        mac: str | None = None,
        instance: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def create_sub_interfaces(
        self,
        *,
        interface: str,
        id: str,
        default: bool | None = None,
        untagged: bool | None = None,
        dot1q: int | Literal["any"] | None = None,
        dot1ad: int | Literal["any"] | None = None,
        inner_dot1q: int | Literal["any"] | None = None,
        exact_match: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def create_tap(
        self,
        *,
        id: int | str | None = None,
        host_if_name: str | None = None,
        host_ns: str | None = None,
        host_ip4_addr: str | None = None,
        host_ip6_addr: str | None = None,
        host_mac_addr: str | None = None,
        host_mtu_size: int | str | None = None,
        num_rx_queues: int | str | None = None,
        rx_ring_size: int | str | None = None,
        tx_ring_size: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def create_teib_interface(
        self,
        *,
        interface: str,
        peer: str,
        nh: str,
        nh_table_id: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def create_vxlan_gpe_tunnel(
        self,
        *,
        local: str,
        remote: str,
        vni: int | str,
        instance: int | str | None = None,
        table: int | str | None = None,
        next_ip4: bool | None = None,
        next_ip6: bool | None = None,
        next_ethernet: bool | None = None,
        local_port: int | str | None = None,
        remote_port: int | str | None = None,
        zero_udp6_checksum: bool | None = None,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def create_vxlan_interface(
        self,
        *,
        local: str,
        vni: int | str,
        evpn: bool | None = None,
        instance: int | str | None = None,
        table: int | str | None = None,
        local_port: int | str | None = None,
        remote_port: int | str | None = None,
        zero_udp6_checksum: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def create_vxlan_tunnel(
        self,
        *,
        local: str,
        vni: int | str,
        remote: str | None = None,
        group: str | None = None,
        via: str | None = None,
        instance: int | str | None = None,
        table: int | str | None = None,
        l2: bool | None = None,
        node: str | None = None,
        l3: bool | None = None,
        local_port: int | str | None = None,
        remote_port: int | str | None = None,
        zero_udp6_checksum: bool | None = None,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def delete_6rd_tunnel(self, *, interface: str, if_generation: str | None = None) -> Any: ...
    def delete_acl_plugin_acl_index(self, *, index: int | str, if_generation: str | None = None) -> Any: ...
    def delete_acl_plugin_acl_rule(
        self,
        *,
        index: int | str,
        place: int | str,
        count: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def delete_acl_plugin_macip_acl_index(
        self,
        *,
        index: int | str,
        if_generation: str | None = None,
    ) -> Any: ...
    def delete_acl_plugin_set(
        self,
        *,
        set: str,
        when_unused: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def delete_bond(self, *, interface: str, if_generation: str | None = None) -> Any: ...
    def delete_geneve_tunnel(self, *, interface: str, if_generation: str | None = None) -> Any: ...
    def delete_gre_tunnel(self, *, interface: str, if_generation: str | None = None) -> Any: ...
    def delete_host_interface_name(self, *, linux_name: str, if_generation: str | None = None) -> Any: ...
    def delete_interface_af_xdp(self, *, interface: str, if_generation: str | None = None) -> Any: ...
    def delete_interface_memif(self, *, interface: str, if_generation: str | None = None) -> Any: ...
    def delete_ipip_tunnel(self, *, interface: str, if_generation: str | None = None) -> Any: ...
    def delete_l2tpv3_tunnel(self, *, interface: str, if_generation: str | None = None) -> Any: ...
    def delete_loopback_interface_intfc(self, *, interface: str, if_generation: str | None = None) -> Any: ...
    def delete_memif_socket_id(self, *, id: int | str, if_generation: str | None = None) -> Any: ...
    def delete_packet_generator_interface(
        self,
        *,
        interface: str,
        if_generation: str | None = None,
    ) -> Any: ...
    def delete_pcap(self, *, interface: str, if_generation: str | None = None) -> Any: ...
    def delete_sr_l2_tunnel(self, *, interface: str, if_generation: str | None = None) -> Any: ...
    def delete_sub_interface(self, *, interface: str, if_generation: str | None = None) -> Any: ...
    def delete_tap(self, *, interface: str, if_generation: str | None = None) -> Any: ...
    def delete_teib_interface(
        self,
        *,
        interface: str,
        peer: str,
        if_generation: str | None = None,
    ) -> Any: ...
    def delete_vxlan_gpe_tunnel(self, *, interface: str, if_generation: str | None = None) -> Any: ...
    def delete_vxlan_interface(self, *, interface: str, if_generation: str | None = None) -> Any: ...
    def delete_vxlan_tunnel(self, *, interface: str, if_generation: str | None = None) -> Any: ...
    def det44_add_in(
        self,
        *,
        inside: str,
        outside: str,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def det44_close_session(
        self,
        *,
        address: str,
        port: int | str,
        remote: str,
        remote_port: int | str,
        in_: bool | None = None,
        out: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def det44_forward(self, *, address: str, if_generation: str | None = None) -> Any: ...
    def det44_plugin_disable(self, *, if_generation: str | None = None) -> Any: ...
    def det44_plugin_enable(
        self,
        *,
        inside_vrf: int | str | None = None,
        outside_vrf: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def det44_reverse(self, *, address: str, port: int | str, if_generation: str | None = None) -> Any: ...
    def dhcp6_client(
        self,
        *,
        interface: str,
        disable: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def dhcp6_pd_client(
        self,
        *,
        interface: str,
        group: str | None = None,
        disable: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def disable_ip6_interface(self, *, interface: str, if_generation: str | None = None) -> Any: ...
    def dslite_add_b4_prefix(
        self,
        *,
        prefix: str,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def dslite_add_pool_address(
        self,
        *,
        first: str,
        last: str | None = None,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def dslite_del_aftr_tunnel_endpoint_address(self, *, if_generation: str | None = None) -> Any: ...
    def dslite_set_aftr_tunnel_endpoint_address(
        self,
        *,
        address: str,
        b4s: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def dslite_set_b4_limit_prefix_length(
        self,
        *,
        length: int | str,
        b4s: int | str,
        if_generation: str | None = None,
    ) -> Any: ...
    def dslite_set_tunnel_mtu(self, *, bytes: int | str, if_generation: str | None = None) -> Any: ...
    def echo(self, *, text: str | None = None, if_generation: str | None = None) -> Any: ...
    def enable_ip6_interface(self, *, interface: str, if_generation: str | None = None) -> Any: ...
    def exec(self, *, file: str, if_generation: str | None = None) -> Any: ...
    def exit(self, *, if_generation: str | None = None) -> Any: ...
    def flowprobe_feature_add_del(
        self,
        *,
        interface: str,
        packets: Literal["l2", "ip4", "ip6"],
        direction: Literal["rx", "tx", "both"] | None = None,
        disable: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def flowprobe_flush(self, *, if_generation: str | None = None) -> Any: ...
    def flowprobe_params(
        self,
        *,
        default: bool | None = None,
        l2: bool | None = None,
        l3: bool | None = None,
        l4: bool | None = None,
        active: int | str | None = None,
        passive: int | str | None = None,
        domain: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def flowprobe_table_max_entries(self, *, flows: int | str, if_generation: str | None = None) -> Any: ...
    def igmp(
        self,
        *,
        interface: str,
        enable: bool | None = None,
        disable: bool | None = None,
        host: bool | None = None,
        router: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def igmp_listen(
        self,
        *,
        interface: str,
        address: str,
        enable: bool | None = None,
        disable: bool | None = None,
        group: str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def igmp_proxy_dev(
        self,
        *,
        table: int | str,
        interface: str,
        add: bool | None = None,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def igmp_proxy_dev_itf(
        self,
        *,
        table: int | str,
        interface: str,
        add: bool | None = None,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def ip6_nd(
        self,
        *,
        interface: str,
        negate: Literal["no"] | None = None,
        ra_suppress: bool | None = None,
        ra_managed_config_flag: bool | None = None,
        ra_other_config_flag: bool | None = None,
        ra_suppress_link_layer: bool | None = None,
        ra_send_unicast: bool | None = None,
        ra_cease: bool | None = None,
        ra_lifetime: bool | None = None,
        ra_initial: bool | None = None,
        ra_interval: bool | None = None,
        ra_hop_limit: bool | None = None,
        ra_reachable_time: bool | None = None,
        ra_retransmit_time: bool | None = None,
        ra_mtu: bool | None = None,
        ra_preference: bool | None = None,
        prefix: str | None = None,
        route: str | None = None,
        server: str | None = None,
        domain: str | None = None,
        lifetime: int | str | None = None,
        count: int | str | None = None,
        every: int | str | None = None,
        max: int | str | None = None,
        min: int | str | None = None,
        hop_limit: int | str | None = None,
        reachable: int | str | None = None,
        retransmit: int | str | None = None,
        mtu: int | str | None = None,
        preference: Literal["high", "medium", "low"] | None = None,
        valid: int | str | None = None,
        preferred: int | str | None = None,
        default: bool | None = None,
        infinite: bool | None = None,
        off_link: bool | None = None,
        no_autoconfig: bool | None = None,
        no_onlink: bool | None = None,
        no_advertise: bool | None = None,
        seconds: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def ip6_nd_address_autoconfig(
        self,
        *,
        interface: str,
        default_route: bool | None = None,
        disable: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def ip6_nd_proxy(
        self,
        *,
        interface: str,
        address: str,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def ip6_punt_policer_rate(
        self,
        *,
        rate: int | str,
        burst: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def ip6_punt_redirect(
        self,
        *,
        add: bool | None = None,
        del_: bool | None = None,
        all: bool | None = None,
        rx: str | None = None,
        next_hop: str | None = None,
        out: str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def ip6_table(
        self,
        *,
        table: int | str,
        add: bool | None = None,
        del_: bool | None = None,
        name: str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def ip6_table_replace(
        self,
        *,
        begin: bool | None = None,
        end: bool | None = None,
        cancel: bool | None = None,
        table: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def ip_mroute(
        self,
        *,
        add: bool | None = None,
        del_: bool | None = None,
        table: int | str | None = None,
        groups: str | None = None,
        address: str | None = None,
        group: str | None = None,
        via: list[IpMrouteArgumentViaRow] | None = None,
        signal: bool | None = None,
        drop: bool | None = None,
        accept_all: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def ip_neighbor(
        self,
        *,
        interface: str,
        address: str,
        del_: bool | None = None,
        mac: str | None = None,
        static: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def ip_neighbor_replace(
        self,
        *,
        begin: bool | None = None,
        end: bool | None = None,
        cancel: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def ip_punt_policer_rate(
        self,
        *,
        rate: int | str,
        burst: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def ip_punt_redirect(
        self,
        *,
        add: bool | None = None,
        del_: bool | None = None,
        all: bool | None = None,
        rx: str | None = None,
        next_hop: str | None = None,
        out: str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def ip_route(
        self,
        *,
        prefix: str,
        add: bool | None = None,
        del_: bool | None = None,
        replace: bool | None = None,
        table: int | str | None = None,
        count: int | str | None = None,
        via: list[IpRouteArgumentViaRow] | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def ip_table(
        self,
        *,
        table: int | str,
        add: bool | None = None,
        del_: bool | None = None,
        name: str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def ip_table_replace(
        self,
        *,
        begin: bool | None = None,
        end: bool | None = None,
        cancel: bool | None = None,
        table: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def ipfix_collector(
        self,
        *,
        collector: str,
        source: str,
        port: int | str | None = None,
        path_mtu: int | str | None = None,
        template_interval: int | str | None = None,
        format: Literal["ipfix", "netflow-v9"] | None = None,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def ipfix_flush(self, *, if_generation: str | None = None) -> Any: ...
    def l2fib_add(
        self,
        *,
        mac: str,
        domain: int | str,
        nowhere: Literal["filter", "drop"] | None = None,
        interface: str | None = None,
        static: bool | None = None,
        filter: bool | None = None,
        count: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def l2fib_del(
        self,
        *,
        mac: str,
        domain: int | str,
        count: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def l2fib_flush_mac_all(self, *, if_generation: str | None = None) -> Any: ...
    def l2fib_flush_mac_bridge_domain(
        self,
        *,
        domain: int | str,
        if_generation: str | None = None,
    ) -> Any: ...
    def l2fib_flush_mac_interface(self, *, interface: str, if_generation: str | None = None) -> Any: ...
    def lcp_create(
        self,
        *,
        interface: str,
        name: str,
        namespace: str | None = None,
        tap_id: int | str | None = None,
        tun: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def lcp_default_netns(self, *, namespace: str | None = None, if_generation: str | None = None) -> Any: ...
    def lcp_delete(self, *, interface: str, if_generation: str | None = None) -> Any: ...
    def lcp_evpn(
        self,
        *,
        interface: str,
        name: str,
        namespace: str | None = None,
        routed: str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def lcp_evpn_del(self, *, interface: str, if_generation: str | None = None) -> Any: ...
    def lcp_fpm_listen(
        self,
        *,
        address: str | None = None,
        port: int | str | None = None,
        namespace: str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def lcp_lcp_auto_subint(
        self,
        *,
        on: bool | None = None,
        off: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def lcp_lcp_sync(
        self,
        *,
        on: bool | None = None,
        off: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def lcp_netlink_rx_buffer_size(self, *, size: int | str, if_generation: str | None = None) -> Any: ...
    def lcp_punt_class(
        self,
        *,
        bfd: bool | None = None,
        link: bool | None = None,
        igp: bool | None = None,
        vrrp: bool | None = None,
        bgp: bool | None = None,
        neighbor: bool | None = None,
        dhcp: bool | None = None,
        icmp: bool | None = None,
        other: bool | None = None,
        rate: int | str | None = None,
        burst: int | str | None = None,
        default: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def lcp_resync(self, *, if_generation: str | None = None) -> Any: ...
    def lisp_adjacency(
        self,
        *,
        reid: str,
        leid: str,
        add: bool | None = None,
        del_: bool | None = None,
        vni: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def lisp_disable(self, *, if_generation: str | None = None) -> Any: ...
    def lisp_eid_table(
        self,
        *,
        eid: str,
        name: str,
        add: bool | None = None,
        del_: bool | None = None,
        vni: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def lisp_eid_table_map(
        self,
        *,
        vni: int | str,
        vrf: int | str,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def lisp_enable(self, *, if_generation: str | None = None) -> Any: ...
    def lisp_header(
        self,
        *,
        plain: bool | None = None,
        gpe: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def lisp_locator(
        self,
        *,
        name: str,
        interface: str,
        add: bool | None = None,
        del_: bool | None = None,
        p: int | str | None = None,
        w: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def lisp_locator_set_add(
        self,
        *,
        name: str,
        iface: list[LispLocatorSetAddArgumentIfaceRow] | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def lisp_locator_set_del(self, *, name: str, if_generation: str | None = None) -> Any: ...
    def lisp_map_resolver(
        self,
        *,
        address: str,
        add: bool | None = None,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def lisp_pitr(
        self,
        *,
        name: str | None = None,
        disable: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def lisp_remote_mapping_add(
        self,
        *,
        eid: str,
        vni: int | str | None = None,
        no_action: bool | None = None,
        natively_forward: bool | None = None,
        send_map_request: bool | None = None,
        drop: bool | None = None,
        rloc: list[LispRemoteMappingAddArgumentRlocRow] | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def lisp_remote_mapping_del(
        self,
        *,
        del_all: bool | None = None,
        vni: int | str | None = None,
        eid: str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def loopback_create_interface(
        self,
        *,
        mac: str | None = None,
        instance: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def loopback_delete_interface_intfc(self, *, interface: str, if_generation: str | None = None) -> Any: ...
    def map_add_domain(
        self,
        *,
        ip4_pfx: str,
        ip6_pfx: str,
        tag: str | None = None,
        ip6_src: str | None = None,
        ip6_address: str | None = None,
        ea_bits_len: int | str | None = None,
        psid_offset: int | str | None = None,
        psid_len: int | str | None = None,
        mtu: int | str | None = None,
        index: int | str | None = None,
        map_t: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def map_add_rule_index(
        self,
        *,
        index: int | str,
        psid: int | str,
        ip6_dst: str,
        if_generation: str | None = None,
    ) -> Any: ...
    def map_del_domain_index(self, *, index: int | str, if_generation: str | None = None) -> Any: ...
    def map_del_rule_index(
        self,
        *,
        index: int | str,
        psid: int | str,
        ip6_dst: str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def map_interface(
        self,
        *,
        interface: str,
        map_t: bool | None = None,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def map_params_fragment(
        self,
        *,
        inner: bool | None = None,
        outer: bool | None = None,
        ignore_df: bool | None = None,
        honor_df: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def map_params_icmp6_unreachables(
        self,
        *,
        on: bool | None = None,
        off: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def map_params_icmp_source_address(self, *, address: str, if_generation: str | None = None) -> Any: ...
    def map_params_security_check(
        self,
        *,
        on: bool | None = None,
        off: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def map_params_security_check_fragments(
        self,
        *,
        on: bool | None = None,
        off: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def map_params_tcp_mss(self, *, bytes: int | str, if_generation: str | None = None) -> Any: ...
    def map_params_traffic_class(
        self,
        *,
        class_: int | str | None = None,
        copy: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def mld(
        self,
        *,
        interface: str,
        enable: bool | None = None,
        disable: bool | None = None,
        host: bool | None = None,
        router: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def mld_listen(
        self,
        *,
        interface: str,
        address: str,
        enable: bool | None = None,
        disable: bool | None = None,
        group: str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def mld_proxy_dev(
        self,
        *,
        table: int | str,
        interface: str,
        add: bool | None = None,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def mld_proxy_dev_itf(
        self,
        *,
        table: int | str,
        interface: str,
        add: bool | None = None,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def mpls_local_label(
        self,
        *,
        label: str,
        add: bool | None = None,
        del_: bool | None = None,
        eos: bool | None = None,
        non_eos: bool | None = None,
        table: int | str | None = None,
        via: list[MplsLocalLabelArgumentViaRow] | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def mpls_table(
        self,
        *,
        table: int | str,
        add: bool | None = None,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def mpls_tunnel(
        self,
        *,
        via: list[MplsTunnelArgumentViaRow],
        add: bool | None = None,
        l2_only: bool | None = None,
        control_word: bool | None = None,
        mac: str | None = None,
        instance: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def mpls_tunnel_del(self, *, interface: str, if_generation: str | None = None) -> Any: ...
    def mpls_tunnel_set(
        self,
        *,
        interface: str,
        add: bool | None = None,
        del_: bool | None = None,
        via: list[MplsTunnelSetArgumentViaRow] | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def nat44_add_address(
        self,
        *,
        first: str,
        last: str | None = None,
        tenant_vrf: int | str | None = None,
        twice_nat: bool | None = None,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def nat44_add_identity_mapping(
        self,
        *,
        address: str | None = None,
        interface: str | None = None,
        tcp: bool | None = None,
        udp: bool | None = None,
        icmp: bool | None = None,
        port: int | str | None = None,
        vrf: int | str | None = None,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def nat44_add_interface_address(
        self,
        *,
        interface: str,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def nat44_add_load_balancing_back_end_protocol(
        self,
        *,
        external: str,
        local: str,
        tcp: bool | None = None,
        udp: bool | None = None,
        vrf: int | str | None = None,
        probability: int | str | None = None,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def nat44_add_load_balancing_static_mapping_protocol(
        self,
        *,
        external: str,
        local: list[Nat44AddLoadBalancingStaticMappingProtocolArgumentLocalRow],
        tcp: bool | None = None,
        udp: bool | None = None,
        twice_nat: bool | None = None,
        self_twice_nat: bool | None = None,
        out2in_only: bool | None = None,
        affinity: int | str | None = None,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def nat44_add_static_mapping(
        self,
        *,
        local: str,
        tcp: bool | None = None,
        udp: bool | None = None,
        icmp: bool | None = None,
        local_port: int | str | None = None,
        external: str | None = None,
        interface: str | None = None,
        external_port: int | str | None = None,
        vrf: int | str | None = None,
        twice_nat: bool | None = None,
        self_twice_nat: bool | None = None,
        out2in_only: bool | None = None,
        exact: str | None = None,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def nat44_address_pooling(
        self,
        *,
        paired: bool | None = None,
        arbitrary: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def nat44_del_session(
        self,
        *,
        address: str,
        port: int | str,
        in_: bool | None = None,
        out: bool | None = None,
        tcp: bool | None = None,
        udp: bool | None = None,
        icmp: bool | None = None,
        remote: str | None = None,
        remote_port: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def nat44_exclude(
        self,
        *,
        destination: str,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def nat44_forwarding(
        self,
        *,
        enable: bool | None = None,
        disable: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def nat44_ha_failover(
        self,
        *,
        disable: bool | None = None,
        address: str | None = None,
        port: int | str | None = None,
        refresh_interval: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def nat44_ha_flush(self, *, if_generation: str | None = None) -> Any: ...
    def nat44_ha_key(
        self,
        *,
        disable: bool | None = None,
        secret: str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def nat44_ha_listener(
        self,
        *,
        disable: bool | None = None,
        address: str | None = None,
        port: int | str | None = None,
        path_mtu: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def nat44_ha_resync(self, *, if_generation: str | None = None) -> Any: ...
    def nat44_mapping(
        self,
        *,
        endpoint_dependent: bool | None = None,
        any: bool | None = None,
        address: bool | None = None,
        address_and_port: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def nat44_plugin_disable(self, *, if_generation: str | None = None) -> Any: ...
    def nat44_plugin_enable(
        self,
        *,
        sessions: int | str | None = None,
        bindings: int | str | None = None,
        inside_vrf: int | str | None = None,
        outside_vrf: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def nat44_port_blocks(
        self,
        *,
        disable: bool | None = None,
        size: int | str | None = None,
        max_blocks: int | str | None = None,
        block_timeout: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def nat44_port_reuse_timeout(self, *, seconds: int | str, if_generation: str | None = None) -> Any: ...
    def nat44_subscriber_limits(
        self,
        *,
        disable: bool | None = None,
        sessions: int | str | None = None,
        ports: int | str | None = None,
        rate: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def nat44_vrf_route(
        self,
        *,
        vrf: int | str,
        to: int | str,
        add: bool | None = None,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def nat44_vrf_table(
        self,
        *,
        vrf: int | str,
        add: bool | None = None,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def nat64_add_interface_address(
        self,
        *,
        interface: str,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def nat64_add_pool_address(
        self,
        *,
        first: str,
        last: str | None = None,
        tenant_vrf: int | str | None = None,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def nat64_add_prefix(
        self,
        *,
        prefix: str,
        tenant_vrf: int | str | None = None,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def nat64_add_static_bib(
        self,
        *,
        local: str,
        local_port: int | str,
        external: str,
        external_port: int | str,
        tcp: bool | None = None,
        udp: bool | None = None,
        icmp: bool | None = None,
        vrf_table: int | str | None = None,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def nat64_filtering(
        self,
        *,
        endpoint_independent: bool | None = None,
        address_dependent: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def nat64_ha_failover(
        self,
        *,
        disable: bool | None = None,
        address: str | None = None,
        port: int | str | None = None,
        refresh_interval: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def nat64_ha_flush(self, *, if_generation: str | None = None) -> Any: ...
    def nat64_ha_key(
        self,
        *,
        disable: bool | None = None,
        secret: str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def nat64_ha_listener(
        self,
        *,
        disable: bool | None = None,
        address: str | None = None,
        port: int | str | None = None,
        path_mtu: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def nat64_ha_resync(self, *, if_generation: str | None = None) -> Any: ...
    def nat64_ip6_mtu(self, *, bytes: int | str, if_generation: str | None = None) -> Any: ...
    def nat64_mss_clamping(
        self,
        *,
        mss: int | str | None = None,
        disable: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def nat64_plugin_disable(self, *, if_generation: str | None = None) -> Any: ...
    def nat64_plugin_enable(
        self,
        *,
        sessions: int | str | None = None,
        outside_vrf: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def nat64_subscriber_limit(
        self,
        *,
        sessions: int | str | None = None,
        prefix_length: int | str | None = None,
        disable: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def nat66_add_interface_address(
        self,
        *,
        interface: str,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def nat66_add_pool_address(
        self,
        *,
        first: str,
        last: str | None = None,
        tenant_vrf: int | str | None = None,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def nat66_add_static_mapping(
        self,
        *,
        local: str,
        local_port: int | str,
        external: str,
        external_port: int | str,
        tcp: bool | None = None,
        udp: bool | None = None,
        icmp: bool | None = None,
        vrf: int | str | None = None,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def nat66_add_static_mapping_local(
        self,
        *,
        local: str,
        external: str,
        vrf: int | str | None = None,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def nat66_filtering(
        self,
        *,
        endpoint_independent: bool | None = None,
        address_dependent: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def nat66_plugin_disable(self, *, if_generation: str | None = None) -> Any: ...
    def nat66_plugin_enable(
        self,
        *,
        sessions: int | str | None = None,
        outside_vrf: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def nat66_subscriber_limit(
        self,
        *,
        sessions: int | str | None = None,
        prefix_length: int | str | None = None,
        disable: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def nat_ipfix_logging(
        self,
        *,
        disable: bool | None = None,
        domain: int | str | None = None,
        src_port: int | str | None = None,
        detail: Literal["sessions", "mappings", "blocks"] | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def nat_mss_clamping(
        self,
        *,
        mss: int | str | None = None,
        disable: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def nat_syslog_logging(
        self,
        *,
        disable: bool | None = None,
        detail: Literal["sessions", "mappings", "blocks"] | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def one_adjacency(
        self,
        *,
        reid: str,
        leid: str,
        add: bool | None = None,
        del_: bool | None = None,
        vni: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def one_disable(self, *, if_generation: str | None = None) -> Any: ...
    def one_eid_table(
        self,
        *,
        eid: str,
        name: str,
        add: bool | None = None,
        del_: bool | None = None,
        vni: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def one_eid_table_map(
        self,
        *,
        vni: int | str,
        vrf: int | str,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def one_enable(self, *, if_generation: str | None = None) -> Any: ...
    def one_header(
        self,
        *,
        plain: bool | None = None,
        gpe: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def one_locator(
        self,
        *,
        name: str,
        interface: str,
        add: bool | None = None,
        del_: bool | None = None,
        p: int | str | None = None,
        w: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def one_locator_set_add(
        self,
        *,
        name: str,
        iface: list[OneLocatorSetAddArgumentIfaceRow] | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def one_locator_set_del(self, *, name: str, if_generation: str | None = None) -> Any: ...
    def one_map_resolver(
        self,
        *,
        address: str,
        add: bool | None = None,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def one_pitr(
        self,
        *,
        name: str | None = None,
        disable: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def one_remote_mapping_add(
        self,
        *,
        eid: str,
        vni: int | str | None = None,
        no_action: bool | None = None,
        natively_forward: bool | None = None,
        send_map_request: bool | None = None,
        drop: bool | None = None,
        rloc: list[OneRemoteMappingAddArgumentRlocRow] | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def one_remote_mapping_del(
        self,
        *,
        del_all: bool | None = None,
        vni: int | str | None = None,
        eid: str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def packet_generator_delete(
        self,
        *,
        name: str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def packet_generator_disable_stream(
        self,
        *,
        name: str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def packet_generator_enable_stream(
        self,
        *,
        name: str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def packet_generator_new(
        self,
        *,
        name: str,
        limit: int | str | None = None,
        rate: str | None = None,
        size: str | None = None,
        interface: str | None = None,
        node: str | None = None,
        worker: int | str | None = None,
        maxframe: int | str | None = None,
        pcap: str | None = None,
        data: str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def pcap_trace(
        self,
        *,
        rx: bool | None = None,
        tx: bool | None = None,
        drop: bool | None = None,
        max: int | str | None = None,
        any: bool | None = None,
        interface: str | None = None,
        file: str | None = None,
        filter: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def pcap_trace_off(self, *, if_generation: str | None = None) -> Any: ...
    def ping(
        self,
        *,
        address: str | None = None,
        on: str | None = None,
        source: str | None = None,
        table_id: int | str | None = None,
        repeat: int | str | None = None,
        size: int | str | None = None,
        interval: str | None = None,
        burst: int | str | None = None,
        df_bit: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def policer(
        self,
        *,
        policer: str,
        interface: str,
        input: bool | None = None,
        output: bool | None = None,
        unapply: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def policer_add_name(
        self,
        *,
        name: str,
        unit: Literal["kbps", "pps"],
        cir: int | str,
        cb: int | str | None = None,
        eir: int | str | None = None,
        eb: int | str | None = None,
        type: Literal["1r2c", "1r3c", "2r3c-2698", "2r3c-4115"] | None = None,
        color_aware: bool | None = None,
        conform: Literal["drop", "transmit", "mark-and-transmit"] | None = None,
        conform_dscp: int | str | None = None,
        exceed: Literal["drop", "transmit", "mark-and-transmit"] | None = None,
        exceed_dscp: int | str | None = None,
        violate: Literal["drop", "transmit", "mark-and-transmit"] | None = None,
        violate_dscp: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def policer_del_name(self, *, name: str, if_generation: str | None = None) -> Any: ...
    def policer_reset_name(self, *, name: str, if_generation: str | None = None) -> Any: ...
    def policer_subscriber(
        self,
        *,
        interface: str,
        input: bool | None = None,
        output: bool | None = None,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def policer_subscriber_add(
        self,
        *,
        prefix: str,
        policer: str,
        upload: str | None = None,
        each: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def policer_subscriber_del(self, *, prefix: str, if_generation: str | None = None) -> Any: ...
    def prom_disable(self, *, if_generation: str | None = None) -> Any: ...
    def prom_enable(
        self,
        *,
        address: str | None = None,
        port: int | str | None = None,
        all_stats: bool | None = None,
        names: Literal["vpp", "quiver", "both"] | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def q(self, *, if_generation: str | None = None) -> Any: ...
    def qos_egress_map_del_id(self, *, map: int | str, if_generation: str | None = None) -> Any: ...
    def qos_egress_map_id(
        self,
        *,
        map: int | str,
        source: list[QosEgressMapIdArgumentSourceRow],
        if_generation: str | None = None,
    ) -> Any: ...
    def qos_mark(
        self,
        *,
        interface: str,
        ip: bool | None = None,
        vlan: bool | None = None,
        mpls: bool | None = None,
        map: int | str | None = None,
        disable: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def qos_record(
        self,
        *,
        interface: str,
        ip: bool | None = None,
        vlan: bool | None = None,
        mpls: bool | None = None,
        disable: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def qos_store(
        self,
        *,
        interface: str,
        ip: bool | None = None,
        vlan: bool | None = None,
        mpls: bool | None = None,
        class_: int | str | None = None,
        disable: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def quit(self, *, if_generation: str | None = None) -> Any: ...
    def send_gratuitous_arp(
        self,
        *,
        interface: str,
        address: str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_acl_plugin_acl(
        self,
        *,
        action: list[SetAclPluginAclArgumentActionRow],
        index: int | str | None = None,
        tag: str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_acl_plugin_acl_file(
        self,
        *,
        file: str,
        index: int | str | None = None,
        tag: str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_acl_plugin_acl_rest(
        self,
        *,
        index: int | str,
        from_: int | str,
        action: list[SetAclPluginAclRestArgumentActionRow] | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_acl_plugin_acl_rule(
        self,
        *,
        index: int | str,
        place: int | str,
        action: list[SetAclPluginAclRuleArgumentActionRow],
        insert: bool | None = None,
        replace: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_acl_plugin_address_set(
        self,
        *,
        set: str,
        prefix: str,
        add: bool | None = None,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_acl_plugin_counters(
        self,
        *,
        on: bool | None = None,
        off: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_acl_plugin_ethertype_whitelist(
        self,
        *,
        interface: str,
        input: bool | None = None,
        output: bool | None = None,
        ethertype: list[str] | None = None,
        off: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_acl_plugin_interface(
        self,
        *,
        interface: str,
        acl: int | str,
        input: bool | None = None,
        output: bool | None = None,
        sequence: int | str | None = None,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_acl_plugin_interface_set(
        self,
        *,
        set: str,
        interface: str,
        add: bool | None = None,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_acl_plugin_l4_match_nonfirst_fragment(
        self,
        *,
        match: int | str,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_acl_plugin_logging_ipfix(
        self,
        *,
        disable: bool | None = None,
        domain: int | str | None = None,
        src_port: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_acl_plugin_logging_rate(self, *, rate: int | str, if_generation: str | None = None) -> Any: ...
    def set_acl_plugin_logging_syslog(
        self,
        *,
        on: bool | None = None,
        off: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_acl_plugin_macip_acl(
        self,
        *,
        action: list[SetAclPluginMacipAclArgumentActionRow],
        index: int | str | None = None,
        tag: str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_acl_plugin_macip_interface(
        self,
        *,
        interface: str,
        acl: int | str,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_acl_plugin_on_full(
        self,
        *,
        deny: bool | None = None,
        stateless: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_acl_plugin_port_set(
        self,
        *,
        set: str,
        ports: str,
        add: bool | None = None,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_acl_plugin_reclassify_sessions(
        self,
        *,
        reclassify: int | str,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_acl_plugin_session_table_max_entries(
        self,
        *,
        sessions: int | str,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_acl_plugin_session_timeout_tcp_idle(
        self,
        *,
        seconds: int | str,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_acl_plugin_session_timeout_tcp_transient(
        self,
        *,
        seconds: int | str,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_acl_plugin_session_timeout_udp_idle(
        self,
        *,
        seconds: int | str,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_acl_plugin_set(
        self,
        *,
        set: str,
        addresses: bool | None = None,
        ports: bool | None = None,
        interfaces: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_acl_plugin_set_file(self, *, set: str, file: str, if_generation: str | None = None) -> Any: ...
    def set_acl_plugin_virtual_reassembly(
        self,
        *,
        on: bool | None = None,
        off: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_arp_proxy(
        self,
        *,
        first: str,
        last: str,
        table: int | str | None = None,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_bridge_domain_arp_entry(
        self,
        *,
        domain: int | str,
        address: str,
        mac: str,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_bridge_domain_arp_term(
        self,
        *,
        domain: int | str,
        enable: bool | None = None,
        disable: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_bridge_domain_arp_ufwd(
        self,
        *,
        domain: int | str,
        disable: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_bridge_domain_flood(
        self,
        *,
        domain: int | str,
        enable: bool | None = None,
        disable: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_bridge_domain_forward(
        self,
        *,
        domain: int | str,
        enable: bool | None = None,
        disable: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_bridge_domain_learn(
        self,
        *,
        domain: int | str,
        enable: bool | None = None,
        disable: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_bridge_domain_learn_limit(
        self,
        *,
        domain: int | str,
        limit: int | str,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_bridge_domain_mac_age(
        self,
        *,
        domain: int | str,
        minutes: int | str,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_bridge_domain_uu_flood(
        self,
        *,
        domain: int | str,
        enable: bool | None = None,
        disable: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_det44_timeouts(
        self,
        *,
        udp: int | str | None = None,
        tcp_established: int | str | None = None,
        tcp_transitory: int | str | None = None,
        icmp: int | str | None = None,
        reset: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_dhcp_client(
        self,
        *,
        intfc: str,
        hostname: str | None = None,
        client_id: str | None = None,
        set_broadcast_flag: bool | None = None,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_dhcp_option_82_vss(
        self,
        *,
        table: int | str,
        oui: int | str | None = None,
        vpn_index: int | str | None = None,
        vpn_ascii_id: str | None = None,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_dhcp_proxy(
        self,
        *,
        server: str,
        src_address: str | None = None,
        server_fib_id: int | str | None = None,
        rx_fib_id: int | str | None = None,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_dhcpv6_proxy(
        self,
        *,
        server: str,
        src_address: str | None = None,
        server_fib_id: int | str | None = None,
        rx_fib_id: int | str | None = None,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_dhcpv6_vss(
        self,
        *,
        table: int | str,
        oui: int | str | None = None,
        vpn_index: int | str | None = None,
        vpn_ascii_id: str | None = None,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_fib_limit(
        self,
        *,
        limit: int | Literal["default"],
        ip4_routes: bool | None = None,
        ip6_routes: bool | None = None,
        path_lists: bool | None = None,
        adjacencies: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_igmp_querier(
        self,
        *,
        interface: str,
        version: int | str | None = None,
        robustness: int | str | None = None,
        query_interval: int | str | None = None,
        response_interval: int | str | None = None,
        last_member_interval: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_interface(
        self,
        *,
        interface: str,
        input: bool | None = None,
        output: bool | None = None,
        ip4: int | str | None = None,
        ip6: int | str | None = None,
        l2: int | str | None = None,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_interface_bond(
        self,
        *,
        interface: str,
        weight: int | str,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_interface_det44(
        self,
        *,
        inside: str | None = None,
        outside: str | None = None,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_interface_dhcp_option_82(
        self,
        *,
        interface: str,
        circuit_id: str | None = None,
        remote_id: str | None = None,
        server_override: bool | None = None,
        policy: Literal["drop", "keep", "replace", "append"] | None = None,
        disable: bool | None = None,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_interface_dhcpv6_options(
        self,
        *,
        interface: str,
        remote_id: str | None = None,
        enterprise: int | str | None = None,
        link_layer_address: bool | None = None,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_interface_feature_gro(
        self,
        *,
        interface: str,
        enable: bool | None = None,
        disable: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_interface_feature_gso(
        self,
        *,
        interface: str,
        enable: bool | None = None,
        disable: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_interface_feature_tx_checksum_offload(
        self,
        *,
        interface: str,
        enable: bool | None = None,
        disable: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_interface_ip6_geneve_bypass(
        self,
        *,
        interface: str,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_interface_ip6_l2tpv3(
        self,
        *,
        interface: str,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_interface_ip6_nd_mirror_proxy(
        self,
        *,
        interface: str,
        enable: bool | None = None,
        disable: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_interface_ip6_table(
        self,
        *,
        interface: str,
        table: int | str,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_interface_ip6_vxlan_bypass(
        self,
        *,
        interface: str,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_interface_ip_addr(
        self,
        *,
        interface: str,
        del_: bool | None = None,
        address: str | None = None,
        all: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_interface_ip_address(
        self,
        *,
        interface: str,
        del_: bool | None = None,
        address: str | None = None,
        all: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_interface_ip_address_replace(
        self,
        *,
        begin: bool | None = None,
        end: bool | None = None,
        cancel: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_interface_ip_directed_broadcast(
        self,
        *,
        interface: str,
        enable: bool | None = None,
        disable: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_interface_ip_geneve_bypass(
        self,
        *,
        interface: str,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_interface_ip_table(
        self,
        *,
        interface: str,
        table: int | str,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_interface_ip_vxlan_bypass(
        self,
        *,
        interface: str,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_interface_l2_bridge(
        self,
        *,
        interface: str,
        domain: int | str,
        bvi: bool | None = None,
        uu_fwd: bool | None = None,
        group: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_interface_l2_flood(
        self,
        *,
        interface: str,
        enable: bool | None = None,
        disable: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_interface_l2_forward(
        self,
        *,
        interface: str,
        enable: bool | None = None,
        disable: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_interface_l2_learn(
        self,
        *,
        interface: str,
        enable: bool | None = None,
        disable: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_interface_l2_tag_rewrite(
        self,
        *,
        interface: str,
        disable: bool | None = None,
        count: int | str | None = None,
        dot1q: bool | None = None,
        dot1ad: bool | None = None,
        tag1: int | str | None = None,
        tag2: int | str | None = None,
        _1_1: bool | None = None,
        _2_1: bool | None = None,
        _1_2: bool | None = None,
        _2_2: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_interface_l2_xconnect(
        self,
        *,
        interface: str,
        peer: str,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_interface_l3(self, *, interface: str, if_generation: str | None = None) -> Any: ...
    def set_interface_lldp(
        self,
        *,
        interface: str,
        port_desc: str | None = None,
        mgmt_ip4: str | None = None,
        mgmt_ip6: str | None = None,
        mgmt_oid: str | None = None,
        disable: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_interface_mac_address(
        self,
        *,
        interface: str,
        mac: str | None = None,
        default: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_interface_mpls(
        self,
        *,
        interface: str,
        state: Literal["enable", "disable"],
        table: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_interface_mtu(
        self,
        *,
        mtu: int | str,
        interface: str,
        packet: bool | None = None,
        ip4: bool | None = None,
        ip6: bool | None = None,
        mpls: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_interface_name(self, *, interface: str, name: str, if_generation: str | None = None) -> Any: ...
    def set_interface_nat44(
        self,
        *,
        inside: str | None = None,
        outside: str | None = None,
        output_feature: bool | None = None,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_interface_nat64_in(
        self,
        *,
        interface: str,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_interface_nat64_out(
        self,
        *,
        interface: str,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_interface_nat66_in(
        self,
        *,
        interface: str,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_interface_nat66_out(
        self,
        *,
        interface: str,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_interface_promiscuous(
        self,
        *,
        state: Literal["on", "off"],
        interface: str,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_interface_proxy_arp(
        self,
        *,
        interface: str,
        enable: bool | None = None,
        disable: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_interface_reassembly(
        self,
        *,
        interface: str,
        full: bool | None = None,
        virtual: bool | None = None,
        on: bool | None = None,
        off: bool | None = None,
        ip4: bool | None = None,
        ip6: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_interface_rx_mode(
        self,
        *,
        interface: str,
        mode: Literal["polling", "interrupt", "adaptive", "default"],
        queue: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_interface_rx_placement(
        self,
        *,
        interface: str,
        worker: int | Literal["default"],
        queue: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_interface_span(
        self,
        *,
        interface: str,
        disable: bool | None = None,
        destination: str | None = None,
        directions: Literal["rx", "tx", "both"] | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_interface_state(
        self,
        *,
        interface: str,
        state: Literal["up", "down"],
        if_generation: str | None = None,
    ) -> Any: ...
    def set_interface_tag(self, *, interface: str, tag: str, if_generation: str | None = None) -> Any: ...
    def set_interface_unnumbered(
        self,
        *,
        interface: str,
        lender: str,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_interface_unnumbered_del(self, *, interface: str, if_generation: str | None = None) -> Any: ...
    def set_ip6_address(
        self,
        *,
        interface: str,
        group: str,
        address: str,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_ip6_flow_hash(
        self,
        *,
        table: int | str | None = None,
        src: bool | None = None,
        dst: bool | None = None,
        sport: bool | None = None,
        dport: bool | None = None,
        proto: bool | None = None,
        reverse: bool | None = None,
        symmetric: bool | None = None,
        gtpv1teid: bool | None = None,
        flowlabel: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_ip6_hop_by_hop(
        self,
        *,
        interface: str,
        policy: Literal["ignore", "process", "drop", "punt"],
        if_generation: str | None = None,
    ) -> Any: ...
    def set_ip6_link_local_address(
        self,
        *,
        interface: str,
        address: str,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_ip6_nd_proxy(
        self,
        *,
        interface: str,
        address: str,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_ip_dad(
        self,
        *,
        ip4: bool | None = None,
        ip6: bool | None = None,
        interface: str | None = None,
        transmits: int | str | None = None,
        wait: bool | None = None,
        auto_remove: bool | None = None,
        default: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_ip_flow_hash(
        self,
        *,
        table: int | str | None = None,
        src: bool | None = None,
        dst: bool | None = None,
        sport: bool | None = None,
        dport: bool | None = None,
        proto: bool | None = None,
        reverse: bool | None = None,
        symmetric: bool | None = None,
        gtpv1teid: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_ip_flow_hash_seed(self, *, seed: int | str, if_generation: str | None = None) -> Any: ...
    def set_ip_icmp_rate_limit(
        self,
        *,
        per_second: int | str,
        ip4: bool | None = None,
        ip6: bool | None = None,
        burst: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_ip_neighbor(
        self,
        *,
        interface: str,
        address: str,
        del_: bool | None = None,
        mac: str | None = None,
        static: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_ip_neighbor_config(
        self,
        *,
        ip4: bool | None = None,
        ip6: bool | None = None,
        age: int | str | None = None,
        limit: int | str | None = None,
        recycle: bool | None = None,
        norecycle: bool | None = None,
        reachable: int | str | None = None,
        delay: int | str | None = None,
        retransmit: str | None = None,
        probes: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_ip_neighbor_replace(
        self,
        *,
        begin: bool | None = None,
        end: bool | None = None,
        cancel: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_ip_pmtu_del_peer(
        self,
        *,
        address: str,
        table: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_ip_pmtu_peer(
        self,
        *,
        address: str,
        mtu: int | str,
        table: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_ip_reassembly(
        self,
        *,
        full: bool | None = None,
        virtual: bool | None = None,
        ip4: bool | None = None,
        ip6: bool | None = None,
        timeout: int | str | None = None,
        max_reassemblies: int | str | None = None,
        max_reassembly_length: int | str | None = None,
        expire_walk_interval: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_ip_reassembly_max_buffers(
        self,
        *,
        max_buffers: int | Literal["default"],
        if_generation: str | None = None,
    ) -> Any: ...
    def set_ipfix_exporter(
        self,
        *,
        disable: bool | None = None,
        collector: str | None = None,
        src: str | None = None,
        port: int | str | None = None,
        path_mtu: int | str | None = None,
        template_interval: int | str | None = None,
        format: Literal["ipfix", "netflow-v9"] | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_l2_learn_limit(self, *, limit: int | str, if_generation: str | None = None) -> Any: ...
    def set_l2fib_entries_max(self, *, entries: int | str, if_generation: str | None = None) -> Any: ...
    def set_l2fib_events(self, *, events: int | str, if_generation: str | None = None) -> Any: ...
    def set_l2tpv3_tunnel_cookie(
        self,
        *,
        interface: str,
        local: str,
        remote: str,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_lldp(
        self,
        *,
        system_name: str | None = None,
        tx_hold: int | str | None = None,
        tx_interval: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_logging_class(
        self,
        *,
        class_: str,
        rate_limit: int | str | None = None,
        level: Literal["emerg", "alert", "crit", "err", "warn", "notice", "info", "debug", "disabled"] | None = None,
        syslog_level: Literal["emerg", "alert", "crit", "err", "warn", "notice", "info", "debug", "disabled"] | None = None,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_logging_default(
        self,
        *,
        rate_limit: int | str | None = None,
        level: Literal["emerg", "alert", "crit", "err", "warn", "notice", "info", "debug", "disabled"] | None = None,
        syslog_level: Literal["emerg", "alert", "crit", "err", "warn", "notice", "info", "debug", "disabled"] | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_logging_format(
        self,
        *,
        format: Literal["text", "json"],
        if_generation: str | None = None,
    ) -> Any: ...
    def set_logging_size(self, *, entries: int | str, if_generation: str | None = None) -> Any: ...
    def set_logging_unthrottle_time(self, *, seconds: int | str, if_generation: str | None = None) -> Any: ...
    def set_mld_querier(
        self,
        *,
        interface: str,
        version: int | str | None = None,
        robustness: int | str | None = None,
        query_interval: int | str | None = None,
        response_interval: int | str | None = None,
        last_member_interval: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_nat44_helper_ftp_port(self, *, port: int | str, if_generation: str | None = None) -> Any: ...
    def set_nat44_helper_pptp_port(self, *, port: int | str, if_generation: str | None = None) -> Any: ...
    def set_nat44_helper_tftp_port(self, *, port: int | str, if_generation: str | None = None) -> Any: ...
    def set_nat44_session_limit(
        self,
        *,
        limit: int | str,
        vrf: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_nat64_timeouts(
        self,
        *,
        udp: int | str | None = None,
        tcp_established: int | str | None = None,
        tcp_transitory: int | str | None = None,
        icmp: int | str | None = None,
        reset: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_nat66_timeouts(
        self,
        *,
        udp: int | str | None = None,
        tcp_established: int | str | None = None,
        tcp_transitory: int | str | None = None,
        icmp: int | str | None = None,
        reset: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_nat_timeout_icmp(self, *, seconds: int | str, if_generation: str | None = None) -> Any: ...
    def set_nat_timeout_tcp_established(
        self,
        *,
        seconds: int | str,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_nat_timeout_tcp_transitory(
        self,
        *,
        seconds: int | str,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_nat_timeout_udp(self, *, seconds: int | str, if_generation: str | None = None) -> Any: ...
    def set_npt66_binding_interface(
        self,
        *,
        interface: str,
        internal: str,
        external: str,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_policer_classify_interface(
        self,
        *,
        interface: str,
        input: bool | None = None,
        output: bool | None = None,
        acl: int | str | None = None,
        policer: str | None = None,
        del_: bool | None = None,
        ip4: int | str | None = None,
        ip6: int | str | None = None,
        l2: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_sr_encaps_hop_limit(
        self,
        *,
        hops: int | str | None = None,
        propagate: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_sr_encaps_source_addr(self, *, address: str, if_generation: str | None = None) -> Any: ...
    def set_sr_hmac_policy(
        self,
        *,
        interface: str,
        ignore: bool | None = None,
        if_present: bool | None = None,
        required: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_sr_l2_tunnel(
        self,
        *,
        interface: str,
        frames: Literal["unicast"] | None = None,
        unicast_bsid: str | None = None,
        del_: bool | None = None,
        group: int | str | None = None,
        flood_bsid: str | None = None,
        off: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_syslog_filter_severity(
        self,
        *,
        severity: Literal["emerg", "alert", "crit", "err", "warn", "notice", "info", "debug"],
        if_generation: str | None = None,
    ) -> Any: ...
    def set_syslog_sender(
        self,
        *,
        disable: bool | None = None,
        collector: str | None = None,
        src: str | None = None,
        port: int | str | None = None,
        max_msg_size: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_urpf(
        self,
        *,
        interface: str,
        ip4: bool | None = None,
        ip6: bool | None = None,
        rx: bool | None = None,
        tx: bool | None = None,
        off: bool | None = None,
        loose: bool | None = None,
        strict: bool | None = None,
        table: int | str | None = None,
        no_default: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_urpf_accept(
        self,
        *,
        prefix: str,
        table: int | str | None = None,
        add: bool | None = None,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_vxlan_flood(
        self,
        *,
        interface: str,
        vtep: str,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_vxlan_station(
        self,
        *,
        interface: str,
        station: str,
        vtep: str,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_vxlan_tunnel(
        self,
        *,
        interface: str,
        via: str | None = None,
        none: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def set_watchdog_timeout(self, *, milliseconds: int | str, if_generation: str | None = None) -> Any: ...
    def sflow_agent(
        self,
        *,
        default: bool | None = None,
        address: str | None = None,
        sub_agent: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def sflow_collector(
        self,
        *,
        collector: str,
        source: str,
        port: int | str | None = None,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def sflow_drop_monitor_limit(
        self,
        *,
        notifications: int | str,
        if_generation: str | None = None,
    ) -> Any: ...
    def sflow_drop_monitoring(
        self,
        *,
        enable: bool | None = None,
        disable: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def sflow_enable_disable(
        self,
        *,
        interface: str,
        direction: Literal["rx", "tx", "both"] | None = None,
        disable: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def sflow_header_bytes(self, *, bytes: int | str, if_generation: str | None = None) -> Any: ...
    def sflow_polling_interval(self, *, seconds: int | str, if_generation: str | None = None) -> Any: ...
    def sflow_sampling_rate(self, *, packets: int | str, if_generation: str | None = None) -> Any: ...
    def shaper_add_name(
        self,
        *,
        name: str,
        rate: str,
        ceil: str | None = None,
        burst: int | str | None = None,
        parent: str | None = None,
        overhead: int | str | None = None,
        target: int | str | None = None,
        interval: int | str | None = None,
        quantum: int | str | None = None,
        ecn: Literal["on", "off"] | None = None,
        isolation: Literal["none", "host"] | None = None,
        diffserv: Literal["besteffort", "3", "4"] | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def shaper_del_name(self, *, name: str, if_generation: str | None = None) -> Any: ...
    def shaper_output(
        self,
        *,
        shaper: str,
        interface: str,
        upload: bool | None = None,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def shaper_subscriber_add(
        self,
        *,
        id: str,
        profile: str,
        address: list[str],
        parent: str | None = None,
        upload: str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def shaper_subscriber_del(self, *, id: str, if_generation: str | None = None) -> Any: ...
    def shaper_subscriber_file(self, *, file: str, if_generation: str | None = None) -> Any: ...
    def show_6rd_tunnel(
        self,
        *,
        interface: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[Show6rdTunnelRow]: ...
    def show_abf_attach(
        self,
        *,
        interface: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowAbfAttachRow]: ...
    def show_abf_policy(
        self,
        *,
        policy: int | str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowAbfPolicyRow]: ...
    def show_acl(
        self,
        *,
        acl: int | str,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowAclRow]: ...
    def show_acl_plugin_acl(
        self,
        *,
        index: int | str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowAclPluginAclRow] | ShowAclPluginAcl: ...
    def show_acl_plugin_ethertype_whitelist(
        self,
        *,
        interface: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowAclPluginEthertypeWhitelistRow]: ...
    def show_acl_plugin_interface(
        self,
        *,
        interface: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowAclPluginInterfaceRow]: ...
    def show_acl_plugin_log(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> ShowAclPluginLog: ...
    def show_acl_plugin_macip_acl(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowAclPluginMacipAclRow]: ...
    def show_acl_plugin_macip_interface(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowAclPluginMacipInterfaceRow]: ...
    def show_acl_plugin_sessions(
        self,
        *,
        interface: str | None = None,
        max: int | str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> ShowAclPluginSessions: ...
    def show_acl_plugin_sets(
        self,
        *,
        set: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowAclPluginSetsRow] | ShowAclPluginSets: ...
    def show_acl_plugin_tables(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowAclPluginTablesRow]: ...
    def show_acl_sets(
        self,
        *,
        set: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def show_adj(self, *, json: bool | None = None, if_generation: str | None = None) -> list[ShowAdjRow]: ...
    def show_adjacency(self, *, json: bool | None = None, if_generation: str | None = None) -> Any: ...
    def show_arp_proxy(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> ShowArpProxy: ...
    def show_bfd_dplane(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowBfdDplaneRow]: ...
    def show_bfd_echo_source(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowBfdEchoSourceRow]: ...
    def show_bfd_keys(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowBfdKeysRow]: ...
    def show_bfd_sessions(
        self,
        *,
        verbose: bool | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowBfdSessionsRow]: ...
    def show_bond(
        self,
        *,
        details: bool | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowBondRow]: ...
    def show_bridge_domain(
        self,
        *,
        domain: int | str | None = None,
        detail: bool | None = None,
        int: bool | None = None,
        arp: bool | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowBridgeDomainRow] | ShowBridgeDomain: ...
    def show_buffers(self, *, json: bool | None = None, if_generation: str | None = None) -> ShowBuffers: ...
    def show_classify_filter(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowClassifyFilterRow]: ...
    def show_classify_policer(
        self,
        *,
        type: Literal["ip4", "ip6", "l2"] | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowClassifyPolicerRow]: ...
    def show_classify_tables(
        self,
        *,
        index: int | str | None = None,
        verbose: bool | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowClassifyTablesRow]: ...
    def show_clock(
        self,
        *,
        verbose: bool | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> ShowClock: ...
    def show_configuration(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> ShowConfiguration: ...
    def show_configuration_history(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowConfigurationHistoryRow]: ...
    def show_configuration_version(
        self,
        *,
        version: int | str,
        secrets: bool | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> ShowConfigurationVersion: ...
    def show_control(self, *, json: bool | None = None, if_generation: str | None = None) -> ShowControl: ...
    def show_cop(
        self,
        *,
        interface: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowCopRow]: ...
    def show_cpu(self, *, json: bool | None = None, if_generation: str | None = None) -> ShowCpu: ...
    def show_det44_interfaces(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowDet44InterfacesRow]: ...
    def show_det44_mappings(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowDet44MappingsRow]: ...
    def show_det44_sessions(
        self,
        *,
        inside: str | None = None,
        outside: str | None = None,
        max: int | str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowDet44SessionsRow]: ...
    def show_det44_summary(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> ShowDet44Summary: ...
    def show_det44_timeouts(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowDet44TimeoutsRow]: ...
    def show_dhcp6_clients(
        self,
        *,
        interface: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowDhcp6ClientsRow]: ...
    def show_dhcp6_pd_clients(
        self,
        *,
        interface: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowDhcp6PdClientsRow]: ...
    def show_dhcp_client(
        self,
        *,
        interface: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowDhcpClientRow]: ...
    def show_dhcp_option_82(
        self,
        *,
        interface: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowDhcpOption82Row]: ...
    def show_dhcp_proxy(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowDhcpProxyRow]: ...
    def show_dhcp_vss(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowDhcpVssRow]: ...
    def show_dhcpv6_options(
        self,
        *,
        interface: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowDhcpv6OptionsRow]: ...
    def show_dhcpv6_proxy(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowDhcpv6ProxyRow]: ...
    def show_dhcpv6_proxy_prefixes(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowDhcpv6ProxyPrefixesRow]: ...
    def show_dhcpv6_vss(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowDhcpv6VssRow]: ...
    def show_dslite_aftr_tunnel_endpoint_address(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> ShowDsliteAftrTunnelEndpointAddress: ...
    def show_dslite_b4s(
        self,
        *,
        max: int | str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowDsliteB4sRow]: ...
    def show_dslite_pool(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowDslitePoolRow]: ...
    def show_errors(
        self,
        *,
        verbose: bool | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> ShowErrors: ...
    def show_features(
        self,
        *,
        verbose: bool | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> ShowFeatures: ...
    def show_fib_limits(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowFibLimitsRow]: ...
    def show_flowprobe_feature(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowFlowprobeFeatureRow]: ...
    def show_flowprobe_params(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> ShowFlowprobeParams: ...
    def show_flowprobe_statistics(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> ShowFlowprobeStatistics: ...
    def show_geneve_tunnel(
        self,
        *,
        interface: str | None = None,
        raw: bool | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowGeneveTunnelRow]: ...
    def show_graph(
        self,
        *,
        dot: bool | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> ShowGraph: ...
    def show_gre_tunnel(
        self,
        *,
        interface: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowGreTunnelRow]: ...
    def show_hardware_interfaces(
        self,
        *,
        interface: str | None = None,
        verbose: bool | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> ShowHardwareInterfaces: ...
    def show_igmp(
        self,
        *,
        interface: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowIgmpRow]: ...
    def show_igmp_config(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowIgmpConfigRow]: ...
    def show_igmp_groups(
        self,
        *,
        interface: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowIgmpGroupsRow]: ...
    def show_igmp_proxy_dev(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowIgmpProxyDevRow]: ...
    def show_igmp_timers(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowIgmpTimersRow]: ...
    def show_inacl(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowInaclRow]: ...
    def show_interface(
        self,
        *,
        interface: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> ShowInterface: ...
    def show_interface_addr(
        self,
        *,
        interface: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def show_interface_address(
        self,
        *,
        interface: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowInterfaceAddressRow]: ...
    def show_interface_features(
        self,
        *,
        interface: str,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> ShowInterfaceFeatures: ...
    def show_interface_l2_tag_rewrite(
        self,
        *,
        interface: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> ShowInterfaceL2TagRewrite: ...
    def show_interface_rx_placement(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> ShowInterfaceRxPlacement: ...
    def show_interface_span(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowInterfaceSpanRow]: ...
    def show_interface_tag(
        self,
        *,
        interface: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowInterfaceTagRow]: ...
    def show_interface_vtr(
        self,
        *,
        interface: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def show_ip4_full_reassembly(
        self,
        *,
        details: bool | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> ShowIp4FullReassembly: ...
    def show_ip4_neighbors(
        self,
        *,
        interface: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def show_ip4_sv_reassembly(
        self,
        *,
        details: bool | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> ShowIp4SvReassembly: ...
    def show_ip6_addresses(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowIp6AddressesRow]: ...
    def show_ip6_autoconfig(
        self,
        *,
        interface: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> ShowIp6Autoconfig: ...
    def show_ip6_fib(
        self,
        *,
        table: int | str | None = None,
        prefix: str | None = None,
        address: str | None = None,
        summary: bool | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowIp6FibRow]: ...
    def show_ip6_full_reassembly(
        self,
        *,
        details: bool | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> ShowIp6FullReassembly: ...
    def show_ip6_interface(
        self,
        *,
        interface: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowIp6InterfaceRow]: ...
    def show_ip6_mfib(
        self,
        *,
        table: int | str | None = None,
        group: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowIp6MfibRow]: ...
    def show_ip6_nd(
        self,
        *,
        interface: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowIp6NdRow]: ...
    def show_ip6_nd_proxy(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowIp6NdProxyRow]: ...
    def show_ip6_nd_routers(
        self,
        *,
        interface: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowIp6NdRoutersRow]: ...
    def show_ip6_neighbor(
        self,
        *,
        interface: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def show_ip6_neighbors(
        self,
        *,
        interface: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowIp6NeighborsRow]: ...
    def show_ip6_prefixes(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowIp6PrefixesRow]: ...
    def show_ip6_punt_redirect(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowIp6PuntRedirectRow]: ...
    def show_ip6_ra(
        self,
        *,
        interface: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowIp6RaRow]: ...
    def show_ip6_sv_reassembly(
        self,
        *,
        details: bool | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> ShowIp6SvReassembly: ...
    def show_ip6_table(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowIp6TableRow]: ...
    def show_ip_arp(
        self,
        *,
        interface: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def show_ip_arp_proxy(self, *, json: bool | None = None, if_generation: str | None = None) -> Any: ...
    def show_ip_dad(
        self,
        *,
        interface: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowIpDadRow]: ...
    def show_ip_fib(
        self,
        *,
        table: int | str | None = None,
        prefix: str | None = None,
        address: str | None = None,
        summary: bool | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowIpFibRow]: ...
    def show_ip_icmp_rate_limit(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowIpIcmpRateLimitRow]: ...
    def show_ip_mfib(
        self,
        *,
        table: int | str | None = None,
        group: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowIpMfibRow]: ...
    def show_ip_neighbor(
        self,
        *,
        interface: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def show_ip_neighbor_config(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowIpNeighborConfigRow]: ...
    def show_ip_neighbor_counters(
        self,
        *,
        interface: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowIpNeighborCountersRow]: ...
    def show_ip_neighbors(
        self,
        *,
        interface: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowIpNeighborsRow]: ...
    def show_ip_pmtu(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowIpPmtuRow]: ...
    def show_ip_punt_redirect(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowIpPuntRedirectRow]: ...
    def show_ip_table(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowIpTableRow]: ...
    def show_ipfix_exporter(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> ShowIpfixExporter: ...
    def show_ipip_tunnel(
        self,
        *,
        interface: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowIpipTunnelRow]: ...
    def show_l2fib(
        self,
        *,
        all: bool | None = None,
        verbose: bool | None = None,
        learn: bool | None = None,
        add: bool | None = None,
        domain: int | str | None = None,
        max: int | str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> ShowL2fib: ...
    def show_l2fib_events(
        self,
        *,
        since: int | str | None = None,
        max: int | str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> ShowL2fibEvents: ...
    def show_l2patch(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowL2patchRow]: ...
    def show_l2tpv3(
        self,
        *,
        interface: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowL2tpv3Row]: ...
    def show_lacp(
        self,
        *,
        interface: str | None = None,
        details: bool | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowLacpRow]: ...
    def show_lcp(
        self,
        *,
        interface: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowLcpRow]: ...
    def show_lcp_punt(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowLcpPuntRow]: ...
    def show_lcp_sync(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowLcpSyncRow]: ...
    def show_lisp_adjacencies(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowLispAdjacenciesRow]: ...
    def show_lisp_eid_table(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowLispEidTableRow]: ...
    def show_lisp_eid_table_map(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowLispEidTableMapRow]: ...
    def show_lisp_locator_set(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowLispLocatorSetRow]: ...
    def show_lisp_map_resolver(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowLispMapResolverRow]: ...
    def show_lisp_statistics(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowLispStatisticsRow]: ...
    def show_lisp_status(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> ShowLispStatus: ...
    def show_lldp(
        self,
        *,
        detail: bool | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowLldpRow] | ShowLldp: ...
    def show_load_balance(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowLoadBalanceRow]: ...
    def show_logging(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowLoggingRow]: ...
    def show_logging_configuration(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> ShowLoggingConfiguration: ...
    def show_map_customer(
        self,
        *,
        address: str,
        port: int | str,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> ShowMapCustomer: ...
    def show_map_domain(
        self,
        *,
        index: int | str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowMapDomainRow]: ...
    def show_map_fragments(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> ShowMapFragments: ...
    def show_map_interface(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowMapInterfaceRow]: ...
    def show_map_rule_index(
        self,
        *,
        index: int | str,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowMapRuleIndexRow]: ...
    def show_map_stats(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> ShowMapStats: ...
    def show_memif(
        self,
        *,
        interface: str | None = None,
        descriptors: bool | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> ShowMemif: ...
    def show_memory(self, *, json: bool | None = None, if_generation: str | None = None) -> ShowMemory: ...
    def show_mfib_signals(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowMfibSignalsRow]: ...
    def show_mld(
        self,
        *,
        interface: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowMldRow]: ...
    def show_mld_config(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowMldConfigRow]: ...
    def show_mld_groups(
        self,
        *,
        interface: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowMldGroupsRow]: ...
    def show_mld_proxy_dev(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowMldProxyDevRow]: ...
    def show_mld_timers(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowMldTimersRow]: ...
    def show_mode(
        self,
        *,
        interface: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowModeRow]: ...
    def show_mpls_fib(
        self,
        *,
        table: int | str | None = None,
        label: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowMplsFibRow]: ...
    def show_mpls_interface(
        self,
        *,
        interface: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowMplsInterfaceRow]: ...
    def show_mpls_tunnel(
        self,
        *,
        interface: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowMplsTunnelRow]: ...
    def show_nat44_addresses(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> ShowNat44Addresses: ...
    def show_nat44_blocks(
        self,
        *,
        inside: str | None = None,
        outside: str | None = None,
        port: int | str | None = None,
        max: int | str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowNat44BlocksRow]: ...
    def show_nat44_ha(self, *, json: bool | None = None, if_generation: str | None = None) -> Any: ...
    def show_nat44_helpers(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowNat44HelpersRow]: ...
    def show_nat44_interfaces(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowNat44InterfacesRow]: ...
    def show_nat44_log(self, *, json: bool | None = None, if_generation: str | None = None) -> Any: ...
    def show_nat44_mappings(
        self,
        *,
        inside: str | None = None,
        outside: str | None = None,
        port: int | str | None = None,
        max: int | str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowNat44MappingsRow]: ...
    def show_nat44_sessions(
        self,
        *,
        local: str | None = None,
        external: str | None = None,
        remote: str | None = None,
        max: int | str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowNat44SessionsRow]: ...
    def show_nat44_static_mappings(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowNat44StaticMappingsRow]: ...
    def show_nat44_subscribers(
        self,
        *,
        inside: str | None = None,
        max: int | str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowNat44SubscribersRow]: ...
    def show_nat44_summary(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> ShowNat44Summary: ...
    def show_nat64_bib(
        self,
        *,
        all: bool | None = None,
        tcp: bool | None = None,
        udp: bool | None = None,
        icmp: bool | None = None,
        max: int | str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowNat64BibRow]: ...
    def show_nat64_ha(self, *, json: bool | None = None, if_generation: str | None = None) -> ShowNat64Ha: ...
    def show_nat64_interfaces(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowNat64InterfacesRow]: ...
    def show_nat64_pool(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> ShowNat64Pool: ...
    def show_nat64_prefix(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowNat64PrefixRow]: ...
    def show_nat64_session_table(
        self,
        *,
        all: bool | None = None,
        tcp: bool | None = None,
        udp: bool | None = None,
        icmp: bool | None = None,
        max: int | str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowNat64SessionTableRow]: ...
    def show_nat64_summary(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> ShowNat64Summary: ...
    def show_nat64_timeouts(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowNat64TimeoutsRow]: ...
    def show_nat66_bindings(
        self,
        *,
        all: bool | None = None,
        tcp: bool | None = None,
        udp: bool | None = None,
        icmp: bool | None = None,
        max: int | str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowNat66BindingsRow]: ...
    def show_nat66_interfaces(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowNat66InterfacesRow]: ...
    def show_nat66_pool(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> ShowNat66Pool: ...
    def show_nat66_sessions(
        self,
        *,
        all: bool | None = None,
        tcp: bool | None = None,
        udp: bool | None = None,
        icmp: bool | None = None,
        max: int | str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowNat66SessionsRow]: ...
    def show_nat66_static_mappings(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowNat66StaticMappingsRow]: ...
    def show_nat66_summary(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> ShowNat66Summary: ...
    def show_nat66_timeouts(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowNat66TimeoutsRow]: ...
    def show_nat_ha(self, *, json: bool | None = None, if_generation: str | None = None) -> ShowNatHa: ...
    def show_nat_log(self, *, json: bool | None = None, if_generation: str | None = None) -> ShowNatLog: ...
    def show_nat_mss_clamping(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> ShowNatMssClamping: ...
    def show_nat_timeouts(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowNatTimeoutsRow]: ...
    def show_node(
        self,
        *,
        node: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> ShowNode: ...
    def show_node_counters(
        self,
        *,
        verbose: bool | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def show_npt66_address(
        self,
        *,
        address: str,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowNpt66AddressRow]: ...
    def show_npt66_bindings(
        self,
        *,
        interface: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowNpt66BindingsRow]: ...
    def show_one_adjacencies(self, *, json: bool | None = None, if_generation: str | None = None) -> Any: ...
    def show_one_eid_table(self, *, json: bool | None = None, if_generation: str | None = None) -> Any: ...
    def show_one_eid_table_map(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def show_one_locator_set(self, *, json: bool | None = None, if_generation: str | None = None) -> Any: ...
    def show_one_map_resolver(self, *, json: bool | None = None, if_generation: str | None = None) -> Any: ...
    def show_one_statistics(self, *, json: bool | None = None, if_generation: str | None = None) -> Any: ...
    def show_one_status(self, *, json: bool | None = None, if_generation: str | None = None) -> Any: ...
    def show_outacl(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowOutaclRow]: ...
    def show_packet_generator(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowPacketGeneratorRow]: ...
    def show_pcap(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowPcapRow]: ...
    def show_plugins(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowPluginsRow]: ...
    def show_policer(
        self,
        *,
        name: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowPolicerRow]: ...
    def show_policer_classify(
        self,
        *,
        interface: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowPolicerClassifyRow]: ...
    def show_policer_interface(
        self,
        *,
        interface: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowPolicerInterfaceRow]: ...
    def show_policer_subscriber(
        self,
        *,
        address: str | None = None,
        verbose: bool | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowPolicerSubscriberRow]: ...
    def show_prom(self, *, json: bool | None = None, if_generation: str | None = None) -> ShowProm: ...
    def show_qos_egress_map(
        self,
        *,
        map: int | str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowQosEgressMapRow]: ...
    def show_qos_mark(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowQosMarkRow]: ...
    def show_qos_record(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowQosRecordRow]: ...
    def show_qos_store(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowQosStoreRow]: ...
    def show_run(
        self,
        *,
        max: bool | None = None,
        what: Literal["summary", "verbose"] | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def show_running_config(
        self,
        *,
        yaml: bool | None = None,
        secrets: bool | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> ShowRunningConfig: ...
    def show_runtime(
        self,
        *,
        max: bool | None = None,
        what: Literal["summary", "verbose"] | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> ShowRuntime: ...
    def show_schema(
        self,
        *,
        command: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def show_sflow(self, *, json: bool | None = None, if_generation: str | None = None) -> ShowSflow: ...
    def show_shaper(
        self,
        *,
        name: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowShaperRow]: ...
    def show_shaper_buffers(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowShaperBuffersRow]: ...
    def show_shaper_interface(
        self,
        *,
        interface: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowShaperInterfaceRow]: ...
    def show_shaper_subscribers(
        self,
        *,
        id: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowShaperSubscribersRow]: ...
    def show_shaper_top(
        self,
        *,
        count: int | str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowShaperTopRow]: ...
    def show_siit(self, *, json: bool | None = None, if_generation: str | None = None) -> ShowSiit: ...
    def show_siit_address(
        self,
        *,
        address: str,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowSiitAddressRow]: ...
    def show_sr_encaps_hop_limit(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowSrEncapsHopLimitRow]: ...
    def show_sr_encaps_source_addr(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowSrEncapsSourceAddrRow]: ...
    def show_sr_hmac(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowSrHmacRow]: ...
    def show_sr_hmac_policy(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowSrHmacPolicyRow]: ...
    def show_sr_l2_tunnels(
        self,
        *,
        interface: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowSrL2TunnelsRow]: ...
    def show_sr_localsids(
        self,
        *,
        sid: str | None = None,
        locator: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowSrLocalsidsRow]: ...
    def show_sr_mpls_policies(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowSrMplsPoliciesRow]: ...
    def show_sr_mpls_steering_policies(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowSrMplsSteeringPoliciesRow]: ...
    def show_sr_oam(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowSrOamRow]: ...
    def show_sr_policies(
        self,
        *,
        bsid: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> ShowSrPolicies: ...
    def show_sr_proxies(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowSrProxiesRow]: ...
    def show_sr_steering_policies(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowSrSteeringPoliciesRow]: ...
    def show_sr_vlan_tables(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowSrVlanTablesRow]: ...
    def show_subscriptions(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowSubscriptionsRow]: ...
    def show_syslog_sender(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> ShowSyslogSender: ...
    def show_tap(self, *, json: bool | None = None, if_generation: str | None = None) -> list[ShowTapRow]: ...
    def show_teib(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowTeibRow]: ...
    def show_threads(self, *, json: bool | None = None, if_generation: str | None = None) -> ShowThreads: ...
    def show_trace(
        self,
        *,
        max: int | str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> ShowTrace: ...
    def show_udp_decap(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowUdpDecapRow]: ...
    def show_udp_encap(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowUdpEncapRow]: ...
    def show_urpf(
        self,
        *,
        interface: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowUrpfRow] | ShowUrpf: ...
    def show_version(
        self,
        *,
        verbose: bool | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> ShowVersion: ...
    def show_vlan(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowVlanRow]: ...
    def show_vrrp_vr(
        self,
        *,
        interface: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowVrrpVrRow]: ...
    def show_vxlan_gpe_tunnel(
        self,
        *,
        interface: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowVxlanGpeTunnelRow]: ...
    def show_vxlan_interface(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowVxlanInterfaceRow]: ...
    def show_vxlan_tunnel(
        self,
        *,
        interface: str | None = None,
        raw: bool | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowVxlanTunnelRow]: ...
    def show_workers(self, *, json: bool | None = None, if_generation: str | None = None) -> ShowWorkers: ...
    def siit_add_mapping(
        self,
        *,
        ipv4: str,
        ipv6: str,
        ip4: bool | None = None,
        ip6: bool | None = None,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def siit_add_prefix(
        self,
        *,
        prefix: str,
        ip4: bool | None = None,
        ip6: bool | None = None,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def siit_ip6_mtu(self, *, bytes: int | str, if_generation: str | None = None) -> Any: ...
    def sr_hmac_key(
        self,
        *,
        id: int | str,
        secret: str,
        sha1: bool | None = None,
        sha256: bool | None = None,
        linux: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def sr_hmac_key_del(self, *, id: int | str, if_generation: str | None = None) -> Any: ...
    def sr_localsid_address(
        self,
        *,
        sid: str | None = None,
        locator: str | None = None,
        fib_table: int | str | None = None,
        behavior: Literal["end"] | None = None,
        psp: bool | None = None,
        usp: bool | None = None,
        usd: bool | None = None,
        table: int | str | None = None,
        interface: list[SrLocalsidAddressArgumentInterfaceRow] | None = None,
        bsid: int | str | None = None,
        from_: list[SrLocalsidAddressArgumentFromRow] | None = None,
        arg_fe2: int | str | None = None,
        csid_bits: int | str | None = None,
        function: str | None = None,
        oif: str | None = None,
        iif: str | None = None,
        src: str | None = None,
        next: list[SrLocalsidAddressArgumentNextRow] | None = None,
        reduced: bool | None = None,
        hops: int | str | None = None,
        bypass: bool | None = None,
        flows: int | str | None = None,
        nat: bool | None = None,
        cache: bool | None = None,
        position: int | str | None = None,
        v4src: str | None = None,
        lookup_table: int | str | None = None,
        uplink: bool | None = None,
        sr_prefix: str | None = None,
        nhtype: Literal["ipv4", "ipv6", "non-ip"] | None = None,
        source: str | None = None,
        drop_in: bool | None = None,
        zero_checksum: bool | None = None,
        mapped: str | None = None,
        mapped_prefix: str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def sr_localsid_del_address(
        self,
        *,
        sid: str | None = None,
        locator: str | None = None,
        fib_table: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def sr_localsid_replace_address(
        self,
        *,
        sid: str | None = None,
        locator: str | None = None,
        fib_table: int | str | None = None,
        behavior: Literal["end"] | None = None,
        psp: bool | None = None,
        usp: bool | None = None,
        usd: bool | None = None,
        table: int | str | None = None,
        interface: list[SrLocalsidReplaceAddressArgumentInterfaceRow] | None = None,
        bsid: int | str | None = None,
        from_: list[SrLocalsidReplaceAddressArgumentFromRow] | None = None,
        arg_fe2: int | str | None = None,
        csid_bits: int | str | None = None,
        function: str | None = None,
        oif: str | None = None,
        iif: str | None = None,
        src: str | None = None,
        next: list[SrLocalsidReplaceAddressArgumentNextRow] | None = None,
        reduced: bool | None = None,
        hops: int | str | None = None,
        bypass: bool | None = None,
        flows: int | str | None = None,
        nat: bool | None = None,
        cache: bool | None = None,
        position: int | str | None = None,
        v4src: str | None = None,
        lookup_table: int | str | None = None,
        uplink: bool | None = None,
        sr_prefix: str | None = None,
        nhtype: Literal["ipv4", "ipv6", "non-ip"] | None = None,
        source: str | None = None,
        drop_in: bool | None = None,
        zero_checksum: bool | None = None,
        mapped: str | None = None,
        mapped_prefix: str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def sr_mpls_policy_add_bsid(
        self,
        *,
        bsid: int | str,
        next: list[SrMplsPolicyAddBsidArgumentNextRow],
        weight: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def sr_mpls_policy_del_bsid(self, *, bsid: int | str, if_generation: str | None = None) -> Any: ...
    def sr_mpls_policy_mod_bsid(
        self,
        *,
        bsid: int | str,
        next: list[SrMplsPolicyModBsidArgumentNextRow] | None = None,
        weight: int | str | None = None,
        index: int | str | None = None,
        at: int | str | None = None,
        share: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def sr_mpls_steer_del_l3(
        self,
        *,
        prefix: str,
        fib_table: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def sr_mpls_steer_l3(
        self,
        *,
        prefix: str,
        bsid: int | str,
        fib_table: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def sr_policy_add_bsid(
        self,
        *,
        bsid: str,
        next: list[SrPolicyAddBsidArgumentNextRow] | None = None,
        weight: int | str | None = None,
        fib_table: int | str | None = None,
        spray: bool | None = None,
        encap: bool | None = None,
        encap_red: bool | None = None,
        insert: bool | None = None,
        insert_red: bool | None = None,
        hmac: int | str | None = None,
        encap_src: str | None = None,
        t_m_gtp4_d: bool | None = None,
        h_m_gtp4_d: bool | None = None,
        sr_prefix: str | None = None,
        v6src: str | None = None,
        nhtype: Literal["ipv4", "ipv6", "non-ip"] | None = None,
        lookup_table: int | str | None = None,
        drop_in: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def sr_policy_del_bsid(self, *, bsid: str, if_generation: str | None = None) -> Any: ...
    def sr_policy_mod_bsid(
        self,
        *,
        bsid: str,
        next: list[SrPolicyModBsidArgumentNextRow] | None = None,
        weight: int | str | None = None,
        deleted: int | str | None = None,
        index: int | str | None = None,
        to: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def sr_steer_del_l2(
        self,
        *,
        interface: str,
        bsid: str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def sr_steer_del_l3(
        self,
        *,
        prefix: str,
        bsid: str | None = None,
        fib_table: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def sr_steer_l2(self, *, interface: str, bsid: str, if_generation: str | None = None) -> Any: ...
    def sr_steer_l3(
        self,
        *,
        prefix: str,
        bsid: str,
        fib_table: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def sr_vlan_table(
        self,
        *,
        table: int | str,
        add: bool | None = None,
        del_: bool | None = None,
        untagged: bool | None = None,
        vlan: int | str | None = None,
        inner_vlan: int | str | None = None,
        interface: str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def test_l2patch_rx(
        self,
        *,
        rx: str,
        tx: str,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def trace_add(
        self,
        *,
        node: str,
        packets: int | str,
        verbose: bool | None = None,
        filter: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def trace_filter(
        self,
        *,
        node: str,
        include: bool | None = None,
        exclude: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def trace_filter_none(self, *, if_generation: str | None = None) -> Any: ...
    def traceroute(
        self,
        *,
        address: str | None = None,
        on: str | None = None,
        source: str | None = None,
        table_id: int | str | None = None,
        hops: int | str | None = None,
        probes: int | str | None = None,
        wait: str | None = None,
        size: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def udp_decap(
        self,
        *,
        outer: Literal["ip4", "ip6"],
        port: int | str,
        contents: Literal["ip4", "ip6", "mpls"],
        add: bool | None = None,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def udp_encap_add(
        self,
        *,
        id: int | str,
        src: str,
        dst: str,
        src_port: int | str,
        dst_port: int | str,
        table_id: int | str | None = None,
        src_port_is_entropy: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def udp_encap_del(self, *, id: int | str, if_generation: str | None = None) -> Any: ...
    def vrrp_peers(
        self,
        *,
        interface: str,
        vr_id: int | str,
        peer: list[str],
        ipv6: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def vrrp_proto(
        self,
        *,
        action: Literal["start", "stop"],
        interface: str,
        vr_id: int | str,
        ipv6: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def vrrp_vr_add(
        self,
        *,
        interface: str,
        vr_id: int | str,
        address: list[str],
        priority: int | str | None = None,
        interval: int | str | None = None,
        no_preempt: bool | None = None,
        accept_mode: bool | None = None,
        unicast: bool | None = None,
        ipv6: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def vrrp_vr_del(
        self,
        *,
        interface: str,
        vr_id: int | str,
        ipv6: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def vrrp_vr_track_bfd_add(
        self,
        *,
        interface: str,
        vr_id: int | str,
        peer_addr: str,
        priority: int | str,
        ipv6: bool | None = None,
        track_interface: str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def vrrp_vr_track_bfd_del(
        self,
        *,
        interface: str,
        vr_id: int | str,
        peer_addr: str,
        ipv6: bool | None = None,
        track_interface: str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def vrrp_vr_track_if_add(
        self,
        *,
        interface: str,
        vr_id: int | str,
        track_interface: str,
        priority: int | str,
        ipv6: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    def vrrp_vr_track_if_del(
        self,
        *,
        interface: str,
        vr_id: int | str,
        track_interface: str,
        ipv6: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...

class AsyncMethods:
    async def document(
        self,
        *,
        do: Literal["check", "diff", "apply"],
        text: str,
        language: Literal["yaml", "commands"] | None = None,
        message: str | None = None,
        confirm_s: int | str | None = None,
        if_generation: str | None = None,
    ) -> Document: ...
    async def abf_attach(
        self,
        *,
        policy: int | str,
        interface: str,
        ip4: bool | None = None,
        ip6: bool | None = None,
        del_: bool | None = None,
        priority: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def abf_policy_add_id(
        self,
        *,
        id: int | str,
        acl: int | str | None = None,
        src: str | None = None,
        dst: str | None = None,
        proto: int | Literal["tcp", "udp", "icmp", "icmp6"] | None = None,
        sport: str | None = None,
        dport: str | None = None,
        dscp: int | str | None = None,
        drop_if_unusable: bool | None = None,
        via: list[AbfPolicyAddIdArgumentViaRow] | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def abf_policy_del_id(
        self,
        *,
        id: int | str,
        via: list[AbfPolicyDelIdArgumentViaRow] | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def adjacency_counters(
        self,
        *,
        enable: bool | None = None,
        disable: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def bfd_dplane_close(self, *, if_generation: str | None = None) -> Any: ...
    async def bfd_dplane_connect(
        self,
        *,
        address: str | None = None,
        port: int | str | None = None,
        namespace: str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def bfd_dplane_connect_unix(self, *, socket: str, if_generation: str | None = None) -> Any: ...
    async def bfd_dplane_listen(
        self,
        *,
        address: str | None = None,
        port: int | str | None = None,
        namespace: str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def bfd_dplane_listen_unix(self, *, socket: str, if_generation: str | None = None) -> Any: ...
    async def bfd_key_del_conf_key_id(
        self,
        *,
        conf_key_id: int | str,
        if_generation: str | None = None,
    ) -> Any: ...
    async def bfd_key_set(
        self,
        *,
        conf_key_id: int | str,
        type: Literal["keyed-sha1", "meticulous-keyed-sha1", "keyed-md5", "meticulous-keyed-md5"],
        secret: str,
        if_generation: str | None = None,
    ) -> Any: ...
    async def bfd_udp_bond_add(
        self,
        *,
        bond: str,
        local_addr: str,
        peer_addr: str,
        desired_min_tx: int | str,
        required_min_rx: int | str,
        detect_mult: int | str,
        conf_key_id: int | str | None = None,
        bfd_key_id: int | str | None = None,
        group_mac: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def bfd_udp_bond_del(
        self,
        *,
        bond: str,
        local_addr: str,
        peer_addr: str,
        if_generation: str | None = None,
    ) -> Any: ...
    async def bfd_udp_bond_mod(
        self,
        *,
        bond: str,
        local_addr: str,
        peer_addr: str,
        desired_min_tx: int | str,
        required_min_rx: int | str,
        detect_mult: int | str,
        if_generation: str | None = None,
    ) -> Any: ...
    async def bfd_udp_bond_set_flags(
        self,
        *,
        bond: str,
        state: Literal["up", "down"],
        local_addr: str,
        peer_addr: str,
        if_generation: str | None = None,
    ) -> Any: ...
    async def bfd_udp_echo_source_del(self, *, if_generation: str | None = None) -> Any: ...
    async def bfd_udp_echo_source_set_interface(
        self,
        *,
        interface: str,
        if_generation: str | None = None,
    ) -> Any: ...
    async def bfd_udp_session_add(
        self,
        *,
        local_addr: str,
        peer_addr: str,
        desired_min_tx: int | str,
        required_min_rx: int | str,
        detect_mult: int | str,
        interface: str | None = None,
        multihop: bool | None = None,
        conf_key_id: int | str | None = None,
        bfd_key_id: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def bfd_udp_session_auth_activate(
        self,
        *,
        local_addr: str,
        peer_addr: str,
        conf_key_id: int | str,
        bfd_key_id: int | str,
        interface: str | None = None,
        multihop: bool | None = None,
        delayed: Literal["yes", "no"] | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def bfd_udp_session_auth_deactivate(
        self,
        *,
        local_addr: str,
        peer_addr: str,
        interface: str | None = None,
        multihop: bool | None = None,
        delayed: Literal["yes", "no"] | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def bfd_udp_session_del(
        self,
        *,
        local_addr: str,
        peer_addr: str,
        interface: str | None = None,
        multihop: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def bfd_udp_session_mod(
        self,
        *,
        local_addr: str,
        peer_addr: str,
        desired_min_tx: int | str,
        required_min_rx: int | str,
        detect_mult: int | str,
        interface: str | None = None,
        multihop: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def bfd_udp_session_set_flags(
        self,
        *,
        state: Literal["up", "down"],
        local_addr: str,
        peer_addr: str,
        interface: str | None = None,
        multihop: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def bond_add(
        self,
        *,
        bond: str,
        interface: str,
        passive: bool | None = None,
        long_timeout: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def bond_del(self, *, interface: str, if_generation: str | None = None) -> Any: ...
    async def classify_filter(
        self,
        *,
        rule: str,
        pcap: bool | None = None,
        trace: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def classify_filter_del(
        self,
        *,
        pcap: bool | None = None,
        trace: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def classify_session_acl_hit_next(
        self,
        *,
        action: Literal["permit", "deny"],
        table: int | str,
        match: str,
        fib4: int | str | None = None,
        fib6: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def classify_session_action(
        self,
        *,
        table: int | str,
        match: str,
        fib4: int | str | None = None,
        fib6: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def classify_session_del_table_index(
        self,
        *,
        table: int | str,
        match: str,
        if_generation: str | None = None,
    ) -> Any: ...
    async def classify_session_policer_hit_next(
        self,
        *,
        policer: str,
        table: int | str,
        match: str,
        color: Literal["conform-color", "exceed-color"] | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def classify_table(
        self,
        *,
        mask: str,
        table: int | str | None = None,
        miss: Literal["permit", "deny"] | None = None,
        next: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def classify_table_del_table(
        self,
        *,
        table: int | str,
        if_generation: str | None = None,
    ) -> Any: ...
    async def clear_acl_plugin_sessions(
        self,
        *,
        interface: str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def clear_counters(self, *, if_generation: str | None = None) -> Any: ...
    async def clear_dhcpv6_proxy_prefixes(
        self,
        *,
        prefix: str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def clear_errors(self, *, if_generation: str | None = None) -> Any: ...
    async def clear_hardware_interfaces(self, *, if_generation: str | None = None) -> Any: ...
    async def clear_igmp_int(self, *, interface: str, if_generation: str | None = None) -> Any: ...
    async def clear_interface_tag(self, *, interface: str, if_generation: str | None = None) -> Any: ...
    async def clear_interfaces(self, *, if_generation: str | None = None) -> Any: ...
    async def clear_ip4_neighbors(
        self,
        *,
        interface: str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def clear_ip6_neighbor(
        self,
        *,
        interface: str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def clear_ip6_neighbors(
        self,
        *,
        interface: str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def clear_ip_neighbor_counters(
        self,
        *,
        interface: str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def clear_ip_neighbors(
        self,
        *,
        interface: str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def clear_ip_pmtu(self, *, if_generation: str | None = None) -> Any: ...
    async def clear_l2fib(self, *, if_generation: str | None = None) -> Any: ...
    async def clear_logging(self, *, if_generation: str | None = None) -> Any: ...
    async def clear_mld_int(self, *, interface: str, if_generation: str | None = None) -> Any: ...
    async def clear_nat44_sessions(self, *, if_generation: str | None = None) -> Any: ...
    async def clear_nat64_sessions(self, *, if_generation: str | None = None) -> Any: ...
    async def clear_nat66_sessions(self, *, if_generation: str | None = None) -> Any: ...
    async def clear_node_counters(self, *, if_generation: str | None = None) -> Any: ...
    async def clear_runtime(self, *, if_generation: str | None = None) -> Any: ...
    async def clear_sr_localsid_counters(self, *, if_generation: str | None = None) -> Any: ...
    async def clear_sr_oam(self, *, if_generation: str | None = None) -> Any: ...
    async def clear_sr_pmtu(self, *, if_generation: str | None = None) -> Any: ...
    async def clear_trace(self, *, if_generation: str | None = None) -> Any: ...
    async def comment(self, *, text: str | None = None, if_generation: str | None = None) -> Any: ...
    async def configuration_apply(
        self,
        *,
        file: str,
        confirm: str | None = None,
        message: str | None = None,
        generation: str | None = None,
        format: Literal["commands", "yaml"] | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def configuration_check(
        self,
        *,
        file: str,
        format: Literal["commands", "yaml"] | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def configuration_confirm(self, *, if_generation: str | None = None) -> Any: ...
    async def configuration_diff(
        self,
        *,
        file: str,
        format: Literal["commands", "yaml"] | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def configuration_diff_version(
        self,
        *,
        version: int | str,
        other: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def configuration_history(self, *, if_generation: str | None = None) -> Any: ...
    async def configuration_rollback(
        self,
        *,
        version: int | str | None = None,
        confirm: str | None = None,
        message: str | None = None,
        generation: str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def configuration_save(
        self,
        *,
        message: str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def configuration_show_version(
        self,
        *,
        version: int | str,
        secrets: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def cop_interface(
        self,
        *,
        interface: str,
        disable: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def cop_whitelist(
        self,
        *,
        interface: str,
        ip4: bool | None = None,
        ip6: bool | None = None,
        fib_id: int | str | None = None,
        disable: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def create_6rd_tunnel_ip6_pfx(
        self,
        *,
        ip6_pfx: str,
        ip4_pfx: str,
        ip4_src: str,
        br: str | None = None,
        tbl_id: int | str | None = None,
        ip4_table_id: int | str | None = None,
        security_check: bool | None = None,
        sec: bool | None = None,
        instance: int | str | None = None,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def create_bond_mode(
        self,
        *,
        mode: Literal["lacp", "xor", "active-backup", "round-robin", "broadcast"],
        balance: Literal["l2", "l23", "l34"] | None = None,
        hw_addr: str | None = None,
        number: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def create_bridge_domain(
        self,
        *,
        domain: int | str,
        learn: int | str | None = None,
        forward: int | str | None = None,
        flood: int | str | None = None,
        uu_flood: int | str | None = None,
        arp_term: int | str | None = None,
        arp_ufwd: int | str | None = None,
        mac_age: int | str | None = None,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def create_geneve_tunnel(
        self,
        *,
        local: str,
        remote: str,
        vni: int | str,
        instance: int | str | None = None,
        table: int | str | None = None,
        l2: bool | None = None,
        node: str | None = None,
        l3_mode: bool | None = None,
        local_port: int | str | None = None,
        remote_port: int | str | None = None,
        zero_udp6_checksum: bool | None = None,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def create_gre_tunnel_src(
        self,
        *,
        src: str,
        dst: str | None = None,
        multipoint: bool | None = None,
        instance: int | str | None = None,
        outer_table_id: int | str | None = None,
        teb: bool | None = None,
        erspan: int | str | None = None,
        type_iii: bool | None = None,
        key: int | str | None = None,
        ttl: int | str | None = None,
        dscp: int | str | None = None,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def create_host_interface(
        self,
        *,
        linux_name: str,
        num_rx_queues: int | str | None = None,
        num_tx_queues: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def create_interface_af_xdp(
        self,
        *,
        linux_name: str,
        name: str | None = None,
        queues: int | str | None = None,
        frames: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def create_interface_memif(
        self,
        *,
        id: int | str,
        socket_id: int | str | None = None,
        master: bool | None = None,
        slave: bool | None = None,
        mode: Literal["ethernet", "ip"] | None = None,
        ring_size: int | str | None = None,
        buffer_size: int | str | None = None,
        rx_queues: int | str | None = None,
        tx_queues: int | str | None = None,
        zero_copy: bool | None = None,
        secret: str | None = None,
        hw_addr: str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def create_ipip_tunnel_src(
        self,
        *,
        src: str,
        dst: str | None = None,
        multipoint: bool | None = None,
        instance: int | str | None = None,
        outer_table_id: int | str | None = None,
        ttl: int | str | None = None,
        dscp: int | str | None = None,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def create_l2tpv3_tunnel_client_address(
        self,
        *,
        client_address: str,
        our_address: str,
        local_cookie: str | None = None,
        remote_cookie: str | None = None,
        cookie_bytes: Literal["0", "4", "8"] | None = None,
        local_session_id: int | str | None = None,
        remote_session_id: int | str | None = None,
        l2_sublayer_present: bool | None = None,
        encap_vrf_id: int | str | None = None,
        instance: int | str | None = None,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def create_loopback_interface(
        self,
        *,
        mac: str | None = None,
        instance: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def create_memif_socket_id(
        self,
        *,
        id: int | str,
        filename: str,
        if_generation: str | None = None,
    ) -> Any: ...
    async def create_mpls_tunnel(
        self,
        *,
        l2_only: bool | None = None,
        control_word: bool | None = None,
        mac: str | None = None,
        instance: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def create_packet_generator_interface(
        self,
        *,
        name: str,
        if_generation: str | None = None,
    ) -> Any: ...
    async def create_pcap(
        self,
        *,
        id: int | str,
        rx: str | None = None,
        tx: str | None = None,
        loop: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def create_sr_l2_tunnel(
        self,
        *,
        unicast_bsid: str | None = None,
        flood_bsid: str | None = None,
        mac: str | None = None,
        instance: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def create_sub_interfaces(
        self,
        *,
        interface: str,
        id: str,
        default: bool | None = None,
        untagged: bool | None = None,
        dot1q: int | Literal["any"] | None = None,
        dot1ad: int | Literal["any"] | None = None,
        inner_dot1q: int | Literal["any"] | None = None,
        exact_match: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def create_tap(
        self,
        *,
        id: int | str | None = None,
        host_if_name: str | None = None,
        host_ns: str | None = None,
        host_ip4_addr: str | None = None,
        host_ip6_addr: str | None = None,
        host_mac_addr: str | None = None,
        host_mtu_size: int | str | None = None,
        num_rx_queues: int | str | None = None,
        rx_ring_size: int | str | None = None,
        tx_ring_size: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def create_teib_interface(
        self,
        *,
        interface: str,
        peer: str,
        nh: str,
        nh_table_id: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def create_vxlan_gpe_tunnel(
        self,
        *,
        local: str,
        remote: str,
        vni: int | str,
        instance: int | str | None = None,
        table: int | str | None = None,
        next_ip4: bool | None = None,
        next_ip6: bool | None = None,
        next_ethernet: bool | None = None,
        local_port: int | str | None = None,
        remote_port: int | str | None = None,
        zero_udp6_checksum: bool | None = None,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def create_vxlan_interface(
        self,
        *,
        local: str,
        vni: int | str,
        evpn: bool | None = None,
        instance: int | str | None = None,
        table: int | str | None = None,
        local_port: int | str | None = None,
        remote_port: int | str | None = None,
        zero_udp6_checksum: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def create_vxlan_tunnel(
        self,
        *,
        local: str,
        vni: int | str,
        remote: str | None = None,
        group: str | None = None,
        via: str | None = None,
        instance: int | str | None = None,
        table: int | str | None = None,
        l2: bool | None = None,
        node: str | None = None,
        l3: bool | None = None,
        local_port: int | str | None = None,
        remote_port: int | str | None = None,
        zero_udp6_checksum: bool | None = None,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def delete_6rd_tunnel(self, *, interface: str, if_generation: str | None = None) -> Any: ...
    async def delete_acl_plugin_acl_index(
        self,
        *,
        index: int | str,
        if_generation: str | None = None,
    ) -> Any: ...
    async def delete_acl_plugin_acl_rule(
        self,
        *,
        index: int | str,
        place: int | str,
        count: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def delete_acl_plugin_macip_acl_index(
        self,
        *,
        index: int | str,
        if_generation: str | None = None,
    ) -> Any: ...
    async def delete_acl_plugin_set(
        self,
        *,
        set: str,
        when_unused: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def delete_bond(self, *, interface: str, if_generation: str | None = None) -> Any: ...
    async def delete_geneve_tunnel(self, *, interface: str, if_generation: str | None = None) -> Any: ...
    async def delete_gre_tunnel(self, *, interface: str, if_generation: str | None = None) -> Any: ...
    async def delete_host_interface_name(
        self,
        *,
        linux_name: str,
        if_generation: str | None = None,
    ) -> Any: ...
    async def delete_interface_af_xdp(self, *, interface: str, if_generation: str | None = None) -> Any: ...
    async def delete_interface_memif(self, *, interface: str, if_generation: str | None = None) -> Any: ...
    async def delete_ipip_tunnel(self, *, interface: str, if_generation: str | None = None) -> Any: ...
    async def delete_l2tpv3_tunnel(self, *, interface: str, if_generation: str | None = None) -> Any: ...
    async def delete_loopback_interface_intfc(
        self,
        *,
        interface: str,
        if_generation: str | None = None,
    ) -> Any: ...
    async def delete_memif_socket_id(self, *, id: int | str, if_generation: str | None = None) -> Any: ...
    async def delete_packet_generator_interface(
        self,
        *,
        interface: str,
        if_generation: str | None = None,
    ) -> Any: ...
    async def delete_pcap(self, *, interface: str, if_generation: str | None = None) -> Any: ...
    async def delete_sr_l2_tunnel(self, *, interface: str, if_generation: str | None = None) -> Any: ...
    async def delete_sub_interface(self, *, interface: str, if_generation: str | None = None) -> Any: ...
    async def delete_tap(self, *, interface: str, if_generation: str | None = None) -> Any: ...
    async def delete_teib_interface(
        self,
        *,
        interface: str,
        peer: str,
        if_generation: str | None = None,
    ) -> Any: ...
    async def delete_vxlan_gpe_tunnel(self, *, interface: str, if_generation: str | None = None) -> Any: ...
    async def delete_vxlan_interface(self, *, interface: str, if_generation: str | None = None) -> Any: ...
    async def delete_vxlan_tunnel(self, *, interface: str, if_generation: str | None = None) -> Any: ...
    async def det44_add_in(
        self,
        *,
        inside: str,
        outside: str,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def det44_close_session(
        self,
        *,
        address: str,
        port: int | str,
        remote: str,
        remote_port: int | str,
        in_: bool | None = None,
        out: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def det44_forward(self, *, address: str, if_generation: str | None = None) -> Any: ...
    async def det44_plugin_disable(self, *, if_generation: str | None = None) -> Any: ...
    async def det44_plugin_enable(
        self,
        *,
        inside_vrf: int | str | None = None,
        outside_vrf: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def det44_reverse(
        self,
        *,
        address: str,
        port: int | str,
        if_generation: str | None = None,
    ) -> Any: ...
    async def dhcp6_client(
        self,
        *,
        interface: str,
        disable: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def dhcp6_pd_client(
        self,
        *,
        interface: str,
        group: str | None = None,
        disable: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def disable_ip6_interface(self, *, interface: str, if_generation: str | None = None) -> Any: ...
    async def dslite_add_b4_prefix(
        self,
        *,
        prefix: str,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def dslite_add_pool_address(
        self,
        *,
        first: str,
        last: str | None = None,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def dslite_del_aftr_tunnel_endpoint_address(self, *, if_generation: str | None = None) -> Any: ...
    async def dslite_set_aftr_tunnel_endpoint_address(
        self,
        *,
        address: str,
        b4s: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def dslite_set_b4_limit_prefix_length(
        self,
        *,
        length: int | str,
        b4s: int | str,
        if_generation: str | None = None,
    ) -> Any: ...
    async def dslite_set_tunnel_mtu(self, *, bytes: int | str, if_generation: str | None = None) -> Any: ...
    async def echo(self, *, text: str | None = None, if_generation: str | None = None) -> Any: ...
    async def enable_ip6_interface(self, *, interface: str, if_generation: str | None = None) -> Any: ...
    async def exec(self, *, file: str, if_generation: str | None = None) -> Any: ...
    async def exit(self, *, if_generation: str | None = None) -> Any: ...
    async def flowprobe_feature_add_del(
        self,
        *,
        interface: str,
        packets: Literal["l2", "ip4", "ip6"],
        direction: Literal["rx", "tx", "both"] | None = None,
        disable: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def flowprobe_flush(self, *, if_generation: str | None = None) -> Any: ...
    async def flowprobe_params(
        self,
        *,
        default: bool | None = None,
        l2: bool | None = None,
        l3: bool | None = None,
        l4: bool | None = None,
        active: int | str | None = None,
        passive: int | str | None = None,
        domain: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def flowprobe_table_max_entries(
        self,
        *,
        flows: int | str,
        if_generation: str | None = None,
    ) -> Any: ...
    async def igmp(
        self,
        *,
        interface: str,
        enable: bool | None = None,
        disable: bool | None = None,
        host: bool | None = None,
        router: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def igmp_listen(
        self,
        *,
        interface: str,
        address: str,
        enable: bool | None = None,
        disable: bool | None = None,
        group: str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def igmp_proxy_dev(
        self,
        *,
        table: int | str,
        interface: str,
        add: bool | None = None,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def igmp_proxy_dev_itf(
        self,
        *,
        table: int | str,
        interface: str,
        add: bool | None = None,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def ip6_nd(
        self,
        *,
        interface: str,
        negate: Literal["no"] | None = None,
        ra_suppress: bool | None = None,
        ra_managed_config_flag: bool | None = None,
        ra_other_config_flag: bool | None = None,
        ra_suppress_link_layer: bool | None = None,
        ra_send_unicast: bool | None = None,
        ra_cease: bool | None = None,
        ra_lifetime: bool | None = None,
        ra_initial: bool | None = None,
        ra_interval: bool | None = None,
        ra_hop_limit: bool | None = None,
        ra_reachable_time: bool | None = None,
        ra_retransmit_time: bool | None = None,
        ra_mtu: bool | None = None,
        ra_preference: bool | None = None,
        prefix: str | None = None,
        route: str | None = None,
        server: str | None = None,
        domain: str | None = None,
        lifetime: int | str | None = None,
        count: int | str | None = None,
        every: int | str | None = None,
        max: int | str | None = None,
        min: int | str | None = None,
        hop_limit: int | str | None = None,
        reachable: int | str | None = None,
        retransmit: int | str | None = None,
        mtu: int | str | None = None,
        preference: Literal["high", "medium", "low"] | None = None,
        valid: int | str | None = None,
        preferred: int | str | None = None,
        default: bool | None = None,
        infinite: bool | None = None,
        off_link: bool | None = None,
        no_autoconfig: bool | None = None,
        no_onlink: bool | None = None,
        no_advertise: bool | None = None,
        seconds: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def ip6_nd_address_autoconfig(
        self,
        *,
        interface: str,
        default_route: bool | None = None,
        disable: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def ip6_nd_proxy(
        self,
        *,
        interface: str,
        address: str,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def ip6_punt_policer_rate(
        self,
        *,
        rate: int | str,
        burst: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def ip6_punt_redirect(
        self,
        *,
        add: bool | None = None,
        del_: bool | None = None,
        all: bool | None = None,
        rx: str | None = None,
        next_hop: str | None = None,
        out: str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def ip6_table(
        self,
        *,
        table: int | str,
        add: bool | None = None,
        del_: bool | None = None,
        name: str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def ip6_table_replace(
        self,
        *,
        begin: bool | None = None,
        end: bool | None = None,
        cancel: bool | None = None,
        table: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def ip_mroute(
        self,
        *,
        add: bool | None = None,
        del_: bool | None = None,
        table: int | str | None = None,
        groups: str | None = None,
        address: str | None = None,
        group: str | None = None,
        via: list[IpMrouteArgumentViaRow] | None = None,
        signal: bool | None = None,
        drop: bool | None = None,
        accept_all: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def ip_neighbor(
        self,
        *,
        interface: str,
        address: str,
        del_: bool | None = None,
        mac: str | None = None,
        static: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def ip_neighbor_replace(
        self,
        *,
        begin: bool | None = None,
        end: bool | None = None,
        cancel: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def ip_punt_policer_rate(
        self,
        *,
        rate: int | str,
        burst: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def ip_punt_redirect(
        self,
        *,
        add: bool | None = None,
        del_: bool | None = None,
        all: bool | None = None,
        rx: str | None = None,
        next_hop: str | None = None,
        out: str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def ip_route(
        self,
        *,
        prefix: str,
        add: bool | None = None,
        del_: bool | None = None,
        replace: bool | None = None,
        table: int | str | None = None,
        count: int | str | None = None,
        via: list[IpRouteArgumentViaRow] | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def ip_table(
        self,
        *,
        table: int | str,
        add: bool | None = None,
        del_: bool | None = None,
        name: str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def ip_table_replace(
        self,
        *,
        begin: bool | None = None,
        end: bool | None = None,
        cancel: bool | None = None,
        table: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def ipfix_collector(
        self,
        *,
        collector: str,
        source: str,
        port: int | str | None = None,
        path_mtu: int | str | None = None,
        template_interval: int | str | None = None,
        format: Literal["ipfix", "netflow-v9"] | None = None,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def ipfix_flush(self, *, if_generation: str | None = None) -> Any: ...
    async def l2fib_add(
        self,
        *,
        mac: str,
        domain: int | str,
        nowhere: Literal["filter", "drop"] | None = None,
        interface: str | None = None,
        static: bool | None = None,
        filter: bool | None = None,
        count: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def l2fib_del(
        self,
        *,
        mac: str,
        domain: int | str,
        count: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def l2fib_flush_mac_all(self, *, if_generation: str | None = None) -> Any: ...
    async def l2fib_flush_mac_bridge_domain(
        self,
        *,
        domain: int | str,
        if_generation: str | None = None,
    ) -> Any: ...
    async def l2fib_flush_mac_interface(self, *, interface: str, if_generation: str | None = None) -> Any: ...
    async def lcp_create(
        self,
        *,
        interface: str,
        name: str,
        namespace: str | None = None,
        tap_id: int | str | None = None,
        tun: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def lcp_default_netns(
        self,
        *,
        namespace: str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def lcp_delete(self, *, interface: str, if_generation: str | None = None) -> Any: ...
    async def lcp_evpn(
        self,
        *,
        interface: str,
        name: str,
        namespace: str | None = None,
        routed: str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def lcp_evpn_del(self, *, interface: str, if_generation: str | None = None) -> Any: ...
    async def lcp_fpm_listen(
        self,
        *,
        address: str | None = None,
        port: int | str | None = None,
        namespace: str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def lcp_lcp_auto_subint(
        self,
        *,
        on: bool | None = None,
        off: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def lcp_lcp_sync(
        self,
        *,
        on: bool | None = None,
        off: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def lcp_netlink_rx_buffer_size(
        self,
        *,
        size: int | str,
        if_generation: str | None = None,
    ) -> Any: ...
    async def lcp_punt_class(
        self,
        *,
        bfd: bool | None = None,
        link: bool | None = None,
        igp: bool | None = None,
        vrrp: bool | None = None,
        bgp: bool | None = None,
        neighbor: bool | None = None,
        dhcp: bool | None = None,
        icmp: bool | None = None,
        other: bool | None = None,
        rate: int | str | None = None,
        burst: int | str | None = None,
        default: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def lcp_resync(self, *, if_generation: str | None = None) -> Any: ...
    async def lisp_adjacency(
        self,
        *,
        reid: str,
        leid: str,
        add: bool | None = None,
        del_: bool | None = None,
        vni: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def lisp_disable(self, *, if_generation: str | None = None) -> Any: ...
    async def lisp_eid_table(
        self,
        *,
        eid: str,
        name: str,
        add: bool | None = None,
        del_: bool | None = None,
        vni: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def lisp_eid_table_map(
        self,
        *,
        vni: int | str,
        vrf: int | str,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def lisp_enable(self, *, if_generation: str | None = None) -> Any: ...
    async def lisp_header(
        self,
        *,
        plain: bool | None = None,
        gpe: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def lisp_locator(
        self,
        *,
        name: str,
        interface: str,
        add: bool | None = None,
        del_: bool | None = None,
        p: int | str | None = None,
        w: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def lisp_locator_set_add(
        self,
        *,
        name: str,
        iface: list[LispLocatorSetAddArgumentIfaceRow] | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def lisp_locator_set_del(self, *, name: str, if_generation: str | None = None) -> Any: ...
    async def lisp_map_resolver(
        self,
        *,
        address: str,
        add: bool | None = None,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def lisp_pitr(
        self,
        *,
        name: str | None = None,
        disable: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def lisp_remote_mapping_add(
        self,
        *,
        eid: str,
        vni: int | str | None = None,
        no_action: bool | None = None,
        natively_forward: bool | None = None,
        send_map_request: bool | None = None,
        drop: bool | None = None,
        rloc: list[LispRemoteMappingAddArgumentRlocRow] | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def lisp_remote_mapping_del(
        self,
        *,
        del_all: bool | None = None,
        vni: int | str | None = None,
        eid: str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def loopback_create_interface(
        self,
        *,
        mac: str | None = None,
        instance: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def loopback_delete_interface_intfc(
        self,
        *,
        interface: str,
        if_generation: str | None = None,
    ) -> Any: ...
    async def map_add_domain(
        self,
        *,
        ip4_pfx: str,
        ip6_pfx: str,
        tag: str | None = None,
        ip6_src: str | None = None,
        ip6_address: str | None = None,
        ea_bits_len: int | str | None = None,
        psid_offset: int | str | None = None,
        psid_len: int | str | None = None,
        mtu: int | str | None = None,
        index: int | str | None = None,
        map_t: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def map_add_rule_index(
        self,
        *,
        index: int | str,
        psid: int | str,
        ip6_dst: str,
        if_generation: str | None = None,
    ) -> Any: ...
    async def map_del_domain_index(self, *, index: int | str, if_generation: str | None = None) -> Any: ...
    async def map_del_rule_index(
        self,
        *,
        index: int | str,
        psid: int | str,
        ip6_dst: str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def map_interface(
        self,
        *,
        interface: str,
        map_t: bool | None = None,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def map_params_fragment(
        self,
        *,
        inner: bool | None = None,
        outer: bool | None = None,
        ignore_df: bool | None = None,
        honor_df: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def map_params_icmp6_unreachables(
        self,
        *,
        on: bool | None = None,
        off: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def map_params_icmp_source_address(
        self,
        *,
        address: str,
        if_generation: str | None = None,
    ) -> Any: ...
    async def map_params_security_check(
        self,
        *,
        on: bool | None = None,
        off: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def map_params_security_check_fragments(
        self,
        *,
        on: bool | None = None,
        off: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def map_params_tcp_mss(self, *, bytes: int | str, if_generation: str | None = None) -> Any: ...
    async def map_params_traffic_class(
        self,
        *,
        class_: int | str | None = None,
        copy: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def mld(
        self,
        *,
        interface: str,
        enable: bool | None = None,
        disable: bool | None = None,
        host: bool | None = None,
        router: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def mld_listen(
        self,
        *,
        interface: str,
        address: str,
        enable: bool | None = None,
        disable: bool | None = None,
        group: str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def mld_proxy_dev(
        self,
        *,
        table: int | str,
        interface: str,
        add: bool | None = None,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def mld_proxy_dev_itf(
        self,
        *,
        table: int | str,
        interface: str,
        add: bool | None = None,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def mpls_local_label(
        self,
        *,
        label: str,
        add: bool | None = None,
        del_: bool | None = None,
        eos: bool | None = None,
        non_eos: bool | None = None,
        table: int | str | None = None,
        via: list[MplsLocalLabelArgumentViaRow] | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def mpls_table(
        self,
        *,
        table: int | str,
        add: bool | None = None,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def mpls_tunnel(
        self,
        *,
        via: list[MplsTunnelArgumentViaRow],
        add: bool | None = None,
        l2_only: bool | None = None,
        control_word: bool | None = None,
        mac: str | None = None,
        instance: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def mpls_tunnel_del(self, *, interface: str, if_generation: str | None = None) -> Any: ...
    async def mpls_tunnel_set(
        self,
        *,
        interface: str,
        add: bool | None = None,
        del_: bool | None = None,
        via: list[MplsTunnelSetArgumentViaRow] | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def nat44_add_address(
        self,
        *,
        first: str,
        last: str | None = None,
        tenant_vrf: int | str | None = None,
        twice_nat: bool | None = None,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def nat44_add_identity_mapping(
        self,
        *,
        address: str | None = None,
        interface: str | None = None,
        tcp: bool | None = None,
        udp: bool | None = None,
        icmp: bool | None = None,
        port: int | str | None = None,
        vrf: int | str | None = None,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def nat44_add_interface_address(
        self,
        *,
        interface: str,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def nat44_add_load_balancing_back_end_protocol(
        self,
        *,
        external: str,
        local: str,
        tcp: bool | None = None,
        udp: bool | None = None,
        vrf: int | str | None = None,
        probability: int | str | None = None,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def nat44_add_load_balancing_static_mapping_protocol(
        self,
        *,
        external: str,
        local: list[Nat44AddLoadBalancingStaticMappingProtocolArgumentLocalRow],
        tcp: bool | None = None,
        udp: bool | None = None,
        twice_nat: bool | None = None,
        self_twice_nat: bool | None = None,
        out2in_only: bool | None = None,
        affinity: int | str | None = None,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def nat44_add_static_mapping(
        self,
        *,
        local: str,
        tcp: bool | None = None,
        udp: bool | None = None,
        icmp: bool | None = None,
        local_port: int | str | None = None,
        external: str | None = None,
        interface: str | None = None,
        external_port: int | str | None = None,
        vrf: int | str | None = None,
        twice_nat: bool | None = None,
        self_twice_nat: bool | None = None,
        out2in_only: bool | None = None,
        exact: str | None = None,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def nat44_address_pooling(
        self,
        *,
        paired: bool | None = None,
        arbitrary: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def nat44_del_session(
        self,
        *,
        address: str,
        port: int | str,
        in_: bool | None = None,
        out: bool | None = None,
        tcp: bool | None = None,
        udp: bool | None = None,
        icmp: bool | None = None,
        remote: str | None = None,
        remote_port: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def nat44_exclude(
        self,
        *,
        destination: str,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def nat44_forwarding(
        self,
        *,
        enable: bool | None = None,
        disable: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def nat44_ha_failover(
        self,
        *,
        disable: bool | None = None,
        address: str | None = None,
        port: int | str | None = None,
        refresh_interval: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def nat44_ha_flush(self, *, if_generation: str | None = None) -> Any: ...
    async def nat44_ha_key(
        self,
        *,
        disable: bool | None = None,
        secret: str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def nat44_ha_listener(
        self,
        *,
        disable: bool | None = None,
        address: str | None = None,
        port: int | str | None = None,
        path_mtu: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def nat44_ha_resync(self, *, if_generation: str | None = None) -> Any: ...
    async def nat44_mapping(
        self,
        *,
        endpoint_dependent: bool | None = None,
        any: bool | None = None,
        address: bool | None = None,
        address_and_port: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def nat44_plugin_disable(self, *, if_generation: str | None = None) -> Any: ...
    async def nat44_plugin_enable(
        self,
        *,
        sessions: int | str | None = None,
        bindings: int | str | None = None,
        inside_vrf: int | str | None = None,
        outside_vrf: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def nat44_port_blocks(
        self,
        *,
        disable: bool | None = None,
        size: int | str | None = None,
        max_blocks: int | str | None = None,
        block_timeout: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def nat44_port_reuse_timeout(
        self,
        *,
        seconds: int | str,
        if_generation: str | None = None,
    ) -> Any: ...
    async def nat44_subscriber_limits(
        self,
        *,
        disable: bool | None = None,
        sessions: int | str | None = None,
        ports: int | str | None = None,
        rate: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def nat44_vrf_route(
        self,
        *,
        vrf: int | str,
        to: int | str,
        add: bool | None = None,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def nat44_vrf_table(
        self,
        *,
        vrf: int | str,
        add: bool | None = None,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def nat64_add_interface_address(
        self,
        *,
        interface: str,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def nat64_add_pool_address(
        self,
        *,
        first: str,
        last: str | None = None,
        tenant_vrf: int | str | None = None,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def nat64_add_prefix(
        self,
        *,
        prefix: str,
        tenant_vrf: int | str | None = None,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def nat64_add_static_bib(
        self,
        *,
        local: str,
        local_port: int | str,
        external: str,
        external_port: int | str,
        tcp: bool | None = None,
        udp: bool | None = None,
        icmp: bool | None = None,
        vrf_table: int | str | None = None,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def nat64_filtering(
        self,
        *,
        endpoint_independent: bool | None = None,
        address_dependent: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def nat64_ha_failover(
        self,
        *,
        disable: bool | None = None,
        address: str | None = None,
        port: int | str | None = None,
        refresh_interval: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def nat64_ha_flush(self, *, if_generation: str | None = None) -> Any: ...
    async def nat64_ha_key(
        self,
        *,
        disable: bool | None = None,
        secret: str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def nat64_ha_listener(
        self,
        *,
        disable: bool | None = None,
        address: str | None = None,
        port: int | str | None = None,
        path_mtu: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def nat64_ha_resync(self, *, if_generation: str | None = None) -> Any: ...
    async def nat64_ip6_mtu(self, *, bytes: int | str, if_generation: str | None = None) -> Any: ...
    async def nat64_mss_clamping(
        self,
        *,
        mss: int | str | None = None,
        disable: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def nat64_plugin_disable(self, *, if_generation: str | None = None) -> Any: ...
    async def nat64_plugin_enable(
        self,
        *,
        sessions: int | str | None = None,
        outside_vrf: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def nat64_subscriber_limit(
        self,
        *,
        sessions: int | str | None = None,
        prefix_length: int | str | None = None,
        disable: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def nat66_add_interface_address(
        self,
        *,
        interface: str,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def nat66_add_pool_address(
        self,
        *,
        first: str,
        last: str | None = None,
        tenant_vrf: int | str | None = None,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def nat66_add_static_mapping(
        self,
        *,
        local: str,
        local_port: int | str,
        external: str,
        external_port: int | str,
        tcp: bool | None = None,
        udp: bool | None = None,
        icmp: bool | None = None,
        vrf: int | str | None = None,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def nat66_add_static_mapping_local(
        self,
        *,
        local: str,
        external: str,
        vrf: int | str | None = None,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def nat66_filtering(
        self,
        *,
        endpoint_independent: bool | None = None,
        address_dependent: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def nat66_plugin_disable(self, *, if_generation: str | None = None) -> Any: ...
    async def nat66_plugin_enable(
        self,
        *,
        sessions: int | str | None = None,
        outside_vrf: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def nat66_subscriber_limit(
        self,
        *,
        sessions: int | str | None = None,
        prefix_length: int | str | None = None,
        disable: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def nat_ipfix_logging(
        self,
        *,
        disable: bool | None = None,
        domain: int | str | None = None,
        src_port: int | str | None = None,
        detail: Literal["sessions", "mappings", "blocks"] | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def nat_mss_clamping(
        self,
        *,
        mss: int | str | None = None,
        disable: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def nat_syslog_logging(
        self,
        *,
        disable: bool | None = None,
        detail: Literal["sessions", "mappings", "blocks"] | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def one_adjacency(
        self,
        *,
        reid: str,
        leid: str,
        add: bool | None = None,
        del_: bool | None = None,
        vni: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def one_disable(self, *, if_generation: str | None = None) -> Any: ...
    async def one_eid_table(
        self,
        *,
        eid: str,
        name: str,
        add: bool | None = None,
        del_: bool | None = None,
        vni: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def one_eid_table_map(
        self,
        *,
        vni: int | str,
        vrf: int | str,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def one_enable(self, *, if_generation: str | None = None) -> Any: ...
    async def one_header(
        self,
        *,
        plain: bool | None = None,
        gpe: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def one_locator(
        self,
        *,
        name: str,
        interface: str,
        add: bool | None = None,
        del_: bool | None = None,
        p: int | str | None = None,
        w: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def one_locator_set_add(
        self,
        *,
        name: str,
        iface: list[OneLocatorSetAddArgumentIfaceRow] | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def one_locator_set_del(self, *, name: str, if_generation: str | None = None) -> Any: ...
    async def one_map_resolver(
        self,
        *,
        address: str,
        add: bool | None = None,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def one_pitr(
        self,
        *,
        name: str | None = None,
        disable: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def one_remote_mapping_add(
        self,
        *,
        eid: str,
        vni: int | str | None = None,
        no_action: bool | None = None,
        natively_forward: bool | None = None,
        send_map_request: bool | None = None,
        drop: bool | None = None,
        rloc: list[OneRemoteMappingAddArgumentRlocRow] | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def one_remote_mapping_del(
        self,
        *,
        del_all: bool | None = None,
        vni: int | str | None = None,
        eid: str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def packet_generator_delete(
        self,
        *,
        name: str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def packet_generator_disable_stream(
        self,
        *,
        name: str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def packet_generator_enable_stream(
        self,
        *,
        name: str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def packet_generator_new(
        self,
        *,
        name: str,
        limit: int | str | None = None,
        rate: str | None = None,
        size: str | None = None,
        interface: str | None = None,
        node: str | None = None,
        worker: int | str | None = None,
        maxframe: int | str | None = None,
        pcap: str | None = None,
        data: str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def pcap_trace(
        self,
        *,
        rx: bool | None = None,
        tx: bool | None = None,
        drop: bool | None = None,
        max: int | str | None = None,
        any: bool | None = None,
        interface: str | None = None,
        file: str | None = None,
        filter: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def pcap_trace_off(self, *, if_generation: str | None = None) -> Any: ...
    async def ping(
        self,
        *,
        address: str | None = None,
        on: str | None = None,
        source: str | None = None,
        table_id: int | str | None = None,
        repeat: int | str | None = None,
        size: int | str | None = None,
        interval: str | None = None,
        burst: int | str | None = None,
        df_bit: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def policer(
        self,
        *,
        policer: str,
        interface: str,
        input: bool | None = None,
        output: bool | None = None,
        unapply: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def policer_add_name(
        self,
        *,
        name: str,
        unit: Literal["kbps", "pps"],
        cir: int | str,
        cb: int | str | None = None,
        eir: int | str | None = None,
        eb: int | str | None = None,
        type: Literal["1r2c", "1r3c", "2r3c-2698", "2r3c-4115"] | None = None,
        color_aware: bool | None = None,
        conform: Literal["drop", "transmit", "mark-and-transmit"] | None = None,
        conform_dscp: int | str | None = None,
        exceed: Literal["drop", "transmit", "mark-and-transmit"] | None = None,
        exceed_dscp: int | str | None = None,
        violate: Literal["drop", "transmit", "mark-and-transmit"] | None = None,
        violate_dscp: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def policer_del_name(self, *, name: str, if_generation: str | None = None) -> Any: ...
    async def policer_reset_name(self, *, name: str, if_generation: str | None = None) -> Any: ...
    async def policer_subscriber(
        self,
        *,
        interface: str,
        input: bool | None = None,
        output: bool | None = None,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def policer_subscriber_add(
        self,
        *,
        prefix: str,
        policer: str,
        upload: str | None = None,
        each: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def policer_subscriber_del(self, *, prefix: str, if_generation: str | None = None) -> Any: ...
    async def prom_disable(self, *, if_generation: str | None = None) -> Any: ...
    async def prom_enable(
        self,
        *,
        address: str | None = None,
        port: int | str | None = None,
        all_stats: bool | None = None,
        names: Literal["vpp", "quiver", "both"] | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def q(self, *, if_generation: str | None = None) -> Any: ...
    async def qos_egress_map_del_id(self, *, map: int | str, if_generation: str | None = None) -> Any: ...
    async def qos_egress_map_id(
        self,
        *,
        map: int | str,
        source: list[QosEgressMapIdArgumentSourceRow],
        if_generation: str | None = None,
    ) -> Any: ...
    async def qos_mark(
        self,
        *,
        interface: str,
        ip: bool | None = None,
        vlan: bool | None = None,
        mpls: bool | None = None,
        map: int | str | None = None,
        disable: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def qos_record(
        self,
        *,
        interface: str,
        ip: bool | None = None,
        vlan: bool | None = None,
        mpls: bool | None = None,
        disable: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def qos_store(
        self,
        *,
        interface: str,
        ip: bool | None = None,
        vlan: bool | None = None,
        mpls: bool | None = None,
        class_: int | str | None = None,
        disable: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def quit(self, *, if_generation: str | None = None) -> Any: ...
    async def send_gratuitous_arp(
        self,
        *,
        interface: str,
        address: str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_acl_plugin_acl(
        self,
        *,
        action: list[SetAclPluginAclArgumentActionRow],
        index: int | str | None = None,
        tag: str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_acl_plugin_acl_file(
        self,
        *,
        file: str,
        index: int | str | None = None,
        tag: str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_acl_plugin_acl_rest(
        self,
        *,
        index: int | str,
        from_: int | str,
        action: list[SetAclPluginAclRestArgumentActionRow] | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_acl_plugin_acl_rule(
        self,
        *,
        index: int | str,
        place: int | str,
        action: list[SetAclPluginAclRuleArgumentActionRow],
        insert: bool | None = None,
        replace: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_acl_plugin_address_set(
        self,
        *,
        set: str,
        prefix: str,
        add: bool | None = None,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_acl_plugin_counters(
        self,
        *,
        on: bool | None = None,
        off: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_acl_plugin_ethertype_whitelist(
        self,
        *,
        interface: str,
        input: bool | None = None,
        output: bool | None = None,
        ethertype: list[str] | None = None,
        off: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_acl_plugin_interface(
        self,
        *,
        interface: str,
        acl: int | str,
        input: bool | None = None,
        output: bool | None = None,
        sequence: int | str | None = None,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_acl_plugin_interface_set(
        self,
        *,
        set: str,
        interface: str,
        add: bool | None = None,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_acl_plugin_l4_match_nonfirst_fragment(
        self,
        *,
        match: int | str,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_acl_plugin_logging_ipfix(
        self,
        *,
        disable: bool | None = None,
        domain: int | str | None = None,
        src_port: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_acl_plugin_logging_rate(
        self,
        *,
        rate: int | str,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_acl_plugin_logging_syslog(
        self,
        *,
        on: bool | None = None,
        off: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_acl_plugin_macip_acl(
        self,
        *,
        action: list[SetAclPluginMacipAclArgumentActionRow],
        index: int | str | None = None,
        tag: str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_acl_plugin_macip_interface(
        self,
        *,
        interface: str,
        acl: int | str,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_acl_plugin_on_full(
        self,
        *,
        deny: bool | None = None,
        stateless: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_acl_plugin_port_set(
        self,
        *,
        set: str,
        ports: str,
        add: bool | None = None,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_acl_plugin_reclassify_sessions(
        self,
        *,
        reclassify: int | str,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_acl_plugin_session_table_max_entries(
        self,
        *,
        sessions: int | str,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_acl_plugin_session_timeout_tcp_idle(
        self,
        *,
        seconds: int | str,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_acl_plugin_session_timeout_tcp_transient(
        self,
        *,
        seconds: int | str,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_acl_plugin_session_timeout_udp_idle(
        self,
        *,
        seconds: int | str,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_acl_plugin_set(
        self,
        *,
        set: str,
        addresses: bool | None = None,
        ports: bool | None = None,
        interfaces: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_acl_plugin_set_file(
        self,
        *,
        set: str,
        file: str,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_acl_plugin_virtual_reassembly(
        self,
        *,
        on: bool | None = None,
        off: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_arp_proxy(
        self,
        *,
        first: str,
        last: str,
        table: int | str | None = None,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_bridge_domain_arp_entry(
        self,
        *,
        domain: int | str,
        address: str,
        mac: str,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_bridge_domain_arp_term(
        self,
        *,
        domain: int | str,
        enable: bool | None = None,
        disable: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_bridge_domain_arp_ufwd(
        self,
        *,
        domain: int | str,
        disable: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_bridge_domain_flood(
        self,
        *,
        domain: int | str,
        enable: bool | None = None,
        disable: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_bridge_domain_forward(
        self,
        *,
        domain: int | str,
        enable: bool | None = None,
        disable: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_bridge_domain_learn(
        self,
        *,
        domain: int | str,
        enable: bool | None = None,
        disable: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_bridge_domain_learn_limit(
        self,
        *,
        domain: int | str,
        limit: int | str,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_bridge_domain_mac_age(
        self,
        *,
        domain: int | str,
        minutes: int | str,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_bridge_domain_uu_flood(
        self,
        *,
        domain: int | str,
        enable: bool | None = None,
        disable: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_det44_timeouts(
        self,
        *,
        udp: int | str | None = None,
        tcp_established: int | str | None = None,
        tcp_transitory: int | str | None = None,
        icmp: int | str | None = None,
        reset: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_dhcp_client(
        self,
        *,
        intfc: str,
        hostname: str | None = None,
        client_id: str | None = None,
        set_broadcast_flag: bool | None = None,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_dhcp_option_82_vss(
        self,
        *,
        table: int | str,
        oui: int | str | None = None,
        vpn_index: int | str | None = None,
        vpn_ascii_id: str | None = None,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_dhcp_proxy(
        self,
        *,
        server: str,
        src_address: str | None = None,
        server_fib_id: int | str | None = None,
        rx_fib_id: int | str | None = None,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_dhcpv6_proxy(
        self,
        *,
        server: str,
        src_address: str | None = None,
        server_fib_id: int | str | None = None,
        rx_fib_id: int | str | None = None,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_dhcpv6_vss(
        self,
        *,
        table: int | str,
        oui: int | str | None = None,
        vpn_index: int | str | None = None,
        vpn_ascii_id: str | None = None,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_fib_limit(
        self,
        *,
        limit: int | Literal["default"],
        ip4_routes: bool | None = None,
        ip6_routes: bool | None = None,
        path_lists: bool | None = None,
        adjacencies: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_igmp_querier(
        self,
        *,
        interface: str,
        version: int | str | None = None,
        robustness: int | str | None = None,
        query_interval: int | str | None = None,
        response_interval: int | str | None = None,
        last_member_interval: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_interface(
        self,
        *,
        interface: str,
        input: bool | None = None,
        output: bool | None = None,
        ip4: int | str | None = None,
        ip6: int | str | None = None,
        l2: int | str | None = None,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_interface_bond(
        self,
        *,
        interface: str,
        weight: int | str,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_interface_det44(
        self,
        *,
        inside: str | None = None,
        outside: str | None = None,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_interface_dhcp_option_82(
        self,
        *,
        interface: str,
        circuit_id: str | None = None,
        remote_id: str | None = None,
        server_override: bool | None = None,
        policy: Literal["drop", "keep", "replace", "append"] | None = None,
        disable: bool | None = None,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_interface_dhcpv6_options(
        self,
        *,
        interface: str,
        remote_id: str | None = None,
        enterprise: int | str | None = None,
        link_layer_address: bool | None = None,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_interface_feature_gro(
        self,
        *,
        interface: str,
        enable: bool | None = None,
        disable: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_interface_feature_gso(
        self,
        *,
        interface: str,
        enable: bool | None = None,
        disable: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_interface_feature_tx_checksum_offload(
        self,
        *,
        interface: str,
        enable: bool | None = None,
        disable: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_interface_ip6_geneve_bypass(
        self,
        *,
        interface: str,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_interface_ip6_l2tpv3(
        self,
        *,
        interface: str,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_interface_ip6_nd_mirror_proxy(
        self,
        *,
        interface: str,
        enable: bool | None = None,
        disable: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_interface_ip6_table(
        self,
        *,
        interface: str,
        table: int | str,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_interface_ip6_vxlan_bypass(
        self,
        *,
        interface: str,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_interface_ip_addr(
        self,
        *,
        interface: str,
        del_: bool | None = None,
        address: str | None = None,
        all: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_interface_ip_address(
        self,
        *,
        interface: str,
        del_: bool | None = None,
        address: str | None = None,
        all: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_interface_ip_address_replace(
        self,
        *,
        begin: bool | None = None,
        end: bool | None = None,
        cancel: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_interface_ip_directed_broadcast(
        self,
        *,
        interface: str,
        enable: bool | None = None,
        disable: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_interface_ip_geneve_bypass(
        self,
        *,
        interface: str,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_interface_ip_table(
        self,
        *,
        interface: str,
        table: int | str,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_interface_ip_vxlan_bypass(
        self,
        *,
        interface: str,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_interface_l2_bridge(
        self,
        *,
        interface: str,
        domain: int | str,
        bvi: bool | None = None,
        uu_fwd: bool | None = None,
        group: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_interface_l2_flood(
        self,
        *,
        interface: str,
        enable: bool | None = None,
        disable: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_interface_l2_forward(
        self,
        *,
        interface: str,
        enable: bool | None = None,
        disable: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_interface_l2_learn(
        self,
        *,
        interface: str,
        enable: bool | None = None,
        disable: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_interface_l2_tag_rewrite(
        self,
        *,
        interface: str,
        disable: bool | None = None,
        count: int | str | None = None,
        dot1q: bool | None = None,
        dot1ad: bool | None = None,
        tag1: int | str | None = None,
        tag2: int | str | None = None,
        _1_1: bool | None = None,
        _2_1: bool | None = None,
        _1_2: bool | None = None,
        _2_2: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_interface_l2_xconnect(
        self,
        *,
        interface: str,
        peer: str,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_interface_l3(self, *, interface: str, if_generation: str | None = None) -> Any: ...
    async def set_interface_lldp(
        self,
        *,
        interface: str,
        port_desc: str | None = None,
        mgmt_ip4: str | None = None,
        mgmt_ip6: str | None = None,
        mgmt_oid: str | None = None,
        disable: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_interface_mac_address(
        self,
        *,
        interface: str,
        mac: str | None = None,
        default: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_interface_mpls(
        self,
        *,
        interface: str,
        state: Literal["enable", "disable"],
        table: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_interface_mtu(
        self,
        *,
        mtu: int | str,
        interface: str,
        packet: bool | None = None,
        ip4: bool | None = None,
        ip6: bool | None = None,
        mpls: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_interface_name(
        self,
        *,
        interface: str,
        name: str,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_interface_nat44(
        self,
        *,
        inside: str | None = None,
        outside: str | None = None,
        output_feature: bool | None = None,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_interface_nat64_in(
        self,
        *,
        interface: str,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_interface_nat64_out(
        self,
        *,
        interface: str,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_interface_nat66_in(
        self,
        *,
        interface: str,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_interface_nat66_out(
        self,
        *,
        interface: str,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_interface_promiscuous(
        self,
        *,
        state: Literal["on", "off"],
        interface: str,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_interface_proxy_arp(
        self,
        *,
        interface: str,
        enable: bool | None = None,
        disable: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_interface_reassembly(
        self,
        *,
        interface: str,
        full: bool | None = None,
        virtual: bool | None = None,
        on: bool | None = None,
        off: bool | None = None,
        ip4: bool | None = None,
        ip6: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_interface_rx_mode(
        self,
        *,
        interface: str,
        mode: Literal["polling", "interrupt", "adaptive", "default"],
        queue: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_interface_rx_placement(
        self,
        *,
        interface: str,
        worker: int | Literal["default"],
        queue: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_interface_span(
        self,
        *,
        interface: str,
        disable: bool | None = None,
        destination: str | None = None,
        directions: Literal["rx", "tx", "both"] | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_interface_state(
        self,
        *,
        interface: str,
        state: Literal["up", "down"],
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_interface_tag(
        self,
        *,
        interface: str,
        tag: str,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_interface_unnumbered(
        self,
        *,
        interface: str,
        lender: str,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_interface_unnumbered_del(
        self,
        *,
        interface: str,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_ip6_address(
        self,
        *,
        interface: str,
        group: str,
        address: str,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_ip6_flow_hash(
        self,
        *,
        table: int | str | None = None,
        src: bool | None = None,
        dst: bool | None = None,
        sport: bool | None = None,
        dport: bool | None = None,
        proto: bool | None = None,
        reverse: bool | None = None,
        symmetric: bool | None = None,
        gtpv1teid: bool | None = None,
        flowlabel: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_ip6_hop_by_hop(
        self,
        *,
        interface: str,
        policy: Literal["ignore", "process", "drop", "punt"],
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_ip6_link_local_address(
        self,
        *,
        interface: str,
        address: str,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_ip6_nd_proxy(
        self,
        *,
        interface: str,
        address: str,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_ip_dad(
        self,
        *,
        ip4: bool | None = None,
        ip6: bool | None = None,
        interface: str | None = None,
        transmits: int | str | None = None,
        wait: bool | None = None,
        auto_remove: bool | None = None,
        default: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_ip_flow_hash(
        self,
        *,
        table: int | str | None = None,
        src: bool | None = None,
        dst: bool | None = None,
        sport: bool | None = None,
        dport: bool | None = None,
        proto: bool | None = None,
        reverse: bool | None = None,
        symmetric: bool | None = None,
        gtpv1teid: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_ip_flow_hash_seed(self, *, seed: int | str, if_generation: str | None = None) -> Any: ...
    async def set_ip_icmp_rate_limit(
        self,
        *,
        per_second: int | str,
        ip4: bool | None = None,
        ip6: bool | None = None,
        burst: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_ip_neighbor(
        self,
        *,
        interface: str,
        address: str,
        del_: bool | None = None,
        mac: str | None = None,
        static: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_ip_neighbor_config(
        self,
        *,
        ip4: bool | None = None,
        ip6: bool | None = None,
        age: int | str | None = None,
        limit: int | str | None = None,
        recycle: bool | None = None,
        norecycle: bool | None = None,
        reachable: int | str | None = None,
        delay: int | str | None = None,
        retransmit: str | None = None,
        probes: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_ip_neighbor_replace(
        self,
        *,
        begin: bool | None = None,
        end: bool | None = None,
        cancel: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_ip_pmtu_del_peer(
        self,
        *,
        address: str,
        table: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_ip_pmtu_peer(
        self,
        *,
        address: str,
        mtu: int | str,
        table: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_ip_reassembly(
        self,
        *,
        full: bool | None = None,
        virtual: bool | None = None,
        ip4: bool | None = None,
        ip6: bool | None = None,
        timeout: int | str | None = None,
        max_reassemblies: int | str | None = None,
        max_reassembly_length: int | str | None = None,
        expire_walk_interval: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_ip_reassembly_max_buffers(
        self,
        *,
        max_buffers: int | Literal["default"],
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_ipfix_exporter(
        self,
        *,
        disable: bool | None = None,
        collector: str | None = None,
        src: str | None = None,
        port: int | str | None = None,
        path_mtu: int | str | None = None,
        template_interval: int | str | None = None,
        format: Literal["ipfix", "netflow-v9"] | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_l2_learn_limit(self, *, limit: int | str, if_generation: str | None = None) -> Any: ...
    async def set_l2fib_entries_max(self, *, entries: int | str, if_generation: str | None = None) -> Any: ...
    async def set_l2fib_events(self, *, events: int | str, if_generation: str | None = None) -> Any: ...
    async def set_l2tpv3_tunnel_cookie(
        self,
        *,
        interface: str,
        local: str,
        remote: str,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_lldp(
        self,
        *,
        system_name: str | None = None,
        tx_hold: int | str | None = None,
        tx_interval: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_logging_class(
        self,
        *,
        class_: str,
        rate_limit: int | str | None = None,
        level: Literal["emerg", "alert", "crit", "err", "warn", "notice", "info", "debug", "disabled"] | None = None,
        syslog_level: Literal["emerg", "alert", "crit", "err", "warn", "notice", "info", "debug", "disabled"] | None = None,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_logging_default(
        self,
        *,
        rate_limit: int | str | None = None,
        level: Literal["emerg", "alert", "crit", "err", "warn", "notice", "info", "debug", "disabled"] | None = None,
        syslog_level: Literal["emerg", "alert", "crit", "err", "warn", "notice", "info", "debug", "disabled"] | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_logging_format(
        self,
        *,
        format: Literal["text", "json"],
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_logging_size(self, *, entries: int | str, if_generation: str | None = None) -> Any: ...
    async def set_logging_unthrottle_time(
        self,
        *,
        seconds: int | str,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_mld_querier(
        self,
        *,
        interface: str,
        version: int | str | None = None,
        robustness: int | str | None = None,
        query_interval: int | str | None = None,
        response_interval: int | str | None = None,
        last_member_interval: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_nat44_helper_ftp_port(
        self,
        *,
        port: int | str,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_nat44_helper_pptp_port(
        self,
        *,
        port: int | str,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_nat44_helper_tftp_port(
        self,
        *,
        port: int | str,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_nat44_session_limit(
        self,
        *,
        limit: int | str,
        vrf: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_nat64_timeouts(
        self,
        *,
        udp: int | str | None = None,
        tcp_established: int | str | None = None,
        tcp_transitory: int | str | None = None,
        icmp: int | str | None = None,
        reset: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_nat66_timeouts(
        self,
        *,
        udp: int | str | None = None,
        tcp_established: int | str | None = None,
        tcp_transitory: int | str | None = None,
        icmp: int | str | None = None,
        reset: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_nat_timeout_icmp(self, *, seconds: int | str, if_generation: str | None = None) -> Any: ...
    async def set_nat_timeout_tcp_established(
        self,
        *,
        seconds: int | str,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_nat_timeout_tcp_transitory(
        self,
        *,
        seconds: int | str,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_nat_timeout_udp(self, *, seconds: int | str, if_generation: str | None = None) -> Any: ...
    async def set_npt66_binding_interface(
        self,
        *,
        interface: str,
        internal: str,
        external: str,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_policer_classify_interface(
        self,
        *,
        interface: str,
        input: bool | None = None,
        output: bool | None = None,
        acl: int | str | None = None,
        policer: str | None = None,
        del_: bool | None = None,
        ip4: int | str | None = None,
        ip6: int | str | None = None,
        l2: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_sr_encaps_hop_limit(
        self,
        *,
        hops: int | str | None = None,
        propagate: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_sr_encaps_source_addr(self, *, address: str, if_generation: str | None = None) -> Any: ...
    async def set_sr_hmac_policy(
        self,
        *,
        interface: str,
        ignore: bool | None = None,
        if_present: bool | None = None,
        required: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_sr_l2_tunnel(
        self,
        *,
        interface: str,
        frames: Literal["unicast"] | None = None,
        unicast_bsid: str | None = None,
        del_: bool | None = None,
        group: int | str | None = None,
        flood_bsid: str | None = None,
        off: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_syslog_filter_severity(
        self,
        *,
        severity: Literal["emerg", "alert", "crit", "err", "warn", "notice", "info", "debug"],
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_syslog_sender(
        self,
        *,
        disable: bool | None = None,
        collector: str | None = None,
        src: str | None = None,
        port: int | str | None = None,
        max_msg_size: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_urpf(
        self,
        *,
        interface: str,
        ip4: bool | None = None,
        ip6: bool | None = None,
        rx: bool | None = None,
        tx: bool | None = None,
        off: bool | None = None,
        loose: bool | None = None,
        strict: bool | None = None,
        table: int | str | None = None,
        no_default: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_urpf_accept(
        self,
        *,
        prefix: str,
        table: int | str | None = None,
        add: bool | None = None,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_vxlan_flood(
        self,
        *,
        interface: str,
        vtep: str,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_vxlan_station(
        self,
        *,
        interface: str,
        station: str,
        vtep: str,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_vxlan_tunnel(
        self,
        *,
        interface: str,
        via: str | None = None,
        none: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def set_watchdog_timeout(
        self,
        *,
        milliseconds: int | str,
        if_generation: str | None = None,
    ) -> Any: ...
    async def sflow_agent(
        self,
        *,
        default: bool | None = None,
        address: str | None = None,
        sub_agent: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def sflow_collector(
        self,
        *,
        collector: str,
        source: str,
        port: int | str | None = None,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def sflow_drop_monitor_limit(
        self,
        *,
        notifications: int | str,
        if_generation: str | None = None,
    ) -> Any: ...
    async def sflow_drop_monitoring(
        self,
        *,
        enable: bool | None = None,
        disable: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def sflow_enable_disable(
        self,
        *,
        interface: str,
        direction: Literal["rx", "tx", "both"] | None = None,
        disable: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def sflow_header_bytes(self, *, bytes: int | str, if_generation: str | None = None) -> Any: ...
    async def sflow_polling_interval(
        self,
        *,
        seconds: int | str,
        if_generation: str | None = None,
    ) -> Any: ...
    async def sflow_sampling_rate(self, *, packets: int | str, if_generation: str | None = None) -> Any: ...
    async def shaper_add_name(
        self,
        *,
        name: str,
        rate: str,
        ceil: str | None = None,
        burst: int | str | None = None,
        parent: str | None = None,
        overhead: int | str | None = None,
        target: int | str | None = None,
        interval: int | str | None = None,
        quantum: int | str | None = None,
        ecn: Literal["on", "off"] | None = None,
        isolation: Literal["none", "host"] | None = None,
        diffserv: Literal["besteffort", "3", "4"] | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def shaper_del_name(self, *, name: str, if_generation: str | None = None) -> Any: ...
    async def shaper_output(
        self,
        *,
        shaper: str,
        interface: str,
        upload: bool | None = None,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def shaper_subscriber_add(
        self,
        *,
        id: str,
        profile: str,
        address: list[str],
        parent: str | None = None,
        upload: str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def shaper_subscriber_del(self, *, id: str, if_generation: str | None = None) -> Any: ...
    async def shaper_subscriber_file(self, *, file: str, if_generation: str | None = None) -> Any: ...
    async def show_6rd_tunnel(
        self,
        *,
        interface: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[Show6rdTunnelRow]: ...
    async def show_abf_attach(
        self,
        *,
        interface: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowAbfAttachRow]: ...
    async def show_abf_policy(
        self,
        *,
        policy: int | str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowAbfPolicyRow]: ...
    async def show_acl(
        self,
        *,
        acl: int | str,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowAclRow]: ...
    async def show_acl_plugin_acl(
        self,
        *,
        index: int | str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowAclPluginAclRow] | ShowAclPluginAcl: ...
    async def show_acl_plugin_ethertype_whitelist(
        self,
        *,
        interface: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowAclPluginEthertypeWhitelistRow]: ...
    async def show_acl_plugin_interface(
        self,
        *,
        interface: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowAclPluginInterfaceRow]: ...
    async def show_acl_plugin_log(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> ShowAclPluginLog: ...
    async def show_acl_plugin_macip_acl(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowAclPluginMacipAclRow]: ...
    async def show_acl_plugin_macip_interface(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowAclPluginMacipInterfaceRow]: ...
    async def show_acl_plugin_sessions(
        self,
        *,
        interface: str | None = None,
        max: int | str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> ShowAclPluginSessions: ...
    async def show_acl_plugin_sets(
        self,
        *,
        set: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowAclPluginSetsRow] | ShowAclPluginSets: ...
    async def show_acl_plugin_tables(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowAclPluginTablesRow]: ...
    async def show_acl_sets(
        self,
        *,
        set: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def show_adj(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowAdjRow]: ...
    async def show_adjacency(self, *, json: bool | None = None, if_generation: str | None = None) -> Any: ...
    async def show_arp_proxy(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> ShowArpProxy: ...
    async def show_bfd_dplane(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowBfdDplaneRow]: ...
    async def show_bfd_echo_source(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowBfdEchoSourceRow]: ...
    async def show_bfd_keys(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowBfdKeysRow]: ...
    async def show_bfd_sessions(
        self,
        *,
        verbose: bool | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowBfdSessionsRow]: ...
    async def show_bond(
        self,
        *,
        details: bool | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowBondRow]: ...
    async def show_bridge_domain(
        self,
        *,
        domain: int | str | None = None,
        detail: bool | None = None,
        int: bool | None = None,
        arp: bool | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowBridgeDomainRow] | ShowBridgeDomain: ...
    async def show_buffers(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> ShowBuffers: ...
    async def show_classify_filter(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowClassifyFilterRow]: ...
    async def show_classify_policer(
        self,
        *,
        type: Literal["ip4", "ip6", "l2"] | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowClassifyPolicerRow]: ...
    async def show_classify_tables(
        self,
        *,
        index: int | str | None = None,
        verbose: bool | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowClassifyTablesRow]: ...
    async def show_clock(
        self,
        *,
        verbose: bool | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> ShowClock: ...
    async def show_configuration(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> ShowConfiguration: ...
    async def show_configuration_history(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowConfigurationHistoryRow]: ...
    async def show_configuration_version(
        self,
        *,
        version: int | str,
        secrets: bool | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> ShowConfigurationVersion: ...
    async def show_control(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> ShowControl: ...
    async def show_cop(
        self,
        *,
        interface: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowCopRow]: ...
    async def show_cpu(self, *, json: bool | None = None, if_generation: str | None = None) -> ShowCpu: ...
    async def show_det44_interfaces(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowDet44InterfacesRow]: ...
    async def show_det44_mappings(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowDet44MappingsRow]: ...
    async def show_det44_sessions(
        self,
        *,
        inside: str | None = None,
        outside: str | None = None,
        max: int | str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowDet44SessionsRow]: ...
    async def show_det44_summary(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> ShowDet44Summary: ...
    async def show_det44_timeouts(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowDet44TimeoutsRow]: ...
    async def show_dhcp6_clients(
        self,
        *,
        interface: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowDhcp6ClientsRow]: ...
    async def show_dhcp6_pd_clients(
        self,
        *,
        interface: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowDhcp6PdClientsRow]: ...
    async def show_dhcp_client(
        self,
        *,
        interface: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowDhcpClientRow]: ...
    async def show_dhcp_option_82(
        self,
        *,
        interface: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowDhcpOption82Row]: ...
    async def show_dhcp_proxy(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowDhcpProxyRow]: ...
    async def show_dhcp_vss(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowDhcpVssRow]: ...
    async def show_dhcpv6_options(
        self,
        *,
        interface: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowDhcpv6OptionsRow]: ...
    async def show_dhcpv6_proxy(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowDhcpv6ProxyRow]: ...
    async def show_dhcpv6_proxy_prefixes(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowDhcpv6ProxyPrefixesRow]: ...
    async def show_dhcpv6_vss(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowDhcpv6VssRow]: ...
    async def show_dslite_aftr_tunnel_endpoint_address(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> ShowDsliteAftrTunnelEndpointAddress: ...
    async def show_dslite_b4s(
        self,
        *,
        max: int | str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowDsliteB4sRow]: ...
    async def show_dslite_pool(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowDslitePoolRow]: ...
    async def show_errors(
        self,
        *,
        verbose: bool | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> ShowErrors: ...
    async def show_features(
        self,
        *,
        verbose: bool | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> ShowFeatures: ...
    async def show_fib_limits(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowFibLimitsRow]: ...
    async def show_flowprobe_feature(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowFlowprobeFeatureRow]: ...
    async def show_flowprobe_params(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> ShowFlowprobeParams: ...
    async def show_flowprobe_statistics(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> ShowFlowprobeStatistics: ...
    async def show_geneve_tunnel(
        self,
        *,
        interface: str | None = None,
        raw: bool | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowGeneveTunnelRow]: ...
    async def show_graph(
        self,
        *,
        dot: bool | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> ShowGraph: ...
    async def show_gre_tunnel(
        self,
        *,
        interface: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowGreTunnelRow]: ...
    async def show_hardware_interfaces(
        self,
        *,
        interface: str | None = None,
        verbose: bool | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> ShowHardwareInterfaces: ...
    async def show_igmp(
        self,
        *,
        interface: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowIgmpRow]: ...
    async def show_igmp_config(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowIgmpConfigRow]: ...
    async def show_igmp_groups(
        self,
        *,
        interface: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowIgmpGroupsRow]: ...
    async def show_igmp_proxy_dev(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowIgmpProxyDevRow]: ...
    async def show_igmp_timers(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowIgmpTimersRow]: ...
    async def show_inacl(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowInaclRow]: ...
    async def show_interface(
        self,
        *,
        interface: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> ShowInterface: ...
    async def show_interface_addr(
        self,
        *,
        interface: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def show_interface_address(
        self,
        *,
        interface: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowInterfaceAddressRow]: ...
    async def show_interface_features(
        self,
        *,
        interface: str,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> ShowInterfaceFeatures: ...
    async def show_interface_l2_tag_rewrite(
        self,
        *,
        interface: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> ShowInterfaceL2TagRewrite: ...
    async def show_interface_rx_placement(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> ShowInterfaceRxPlacement: ...
    async def show_interface_span(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowInterfaceSpanRow]: ...
    async def show_interface_tag(
        self,
        *,
        interface: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowInterfaceTagRow]: ...
    async def show_interface_vtr(
        self,
        *,
        interface: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def show_ip4_full_reassembly(
        self,
        *,
        details: bool | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> ShowIp4FullReassembly: ...
    async def show_ip4_neighbors(
        self,
        *,
        interface: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def show_ip4_sv_reassembly(
        self,
        *,
        details: bool | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> ShowIp4SvReassembly: ...
    async def show_ip6_addresses(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowIp6AddressesRow]: ...
    async def show_ip6_autoconfig(
        self,
        *,
        interface: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> ShowIp6Autoconfig: ...
    async def show_ip6_fib(
        self,
        *,
        table: int | str | None = None,
        prefix: str | None = None,
        address: str | None = None,
        summary: bool | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowIp6FibRow]: ...
    async def show_ip6_full_reassembly(
        self,
        *,
        details: bool | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> ShowIp6FullReassembly: ...
    async def show_ip6_interface(
        self,
        *,
        interface: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowIp6InterfaceRow]: ...
    async def show_ip6_mfib(
        self,
        *,
        table: int | str | None = None,
        group: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowIp6MfibRow]: ...
    async def show_ip6_nd(
        self,
        *,
        interface: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowIp6NdRow]: ...
    async def show_ip6_nd_proxy(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowIp6NdProxyRow]: ...
    async def show_ip6_nd_routers(
        self,
        *,
        interface: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowIp6NdRoutersRow]: ...
    async def show_ip6_neighbor(
        self,
        *,
        interface: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def show_ip6_neighbors(
        self,
        *,
        interface: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowIp6NeighborsRow]: ...
    async def show_ip6_prefixes(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowIp6PrefixesRow]: ...
    async def show_ip6_punt_redirect(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowIp6PuntRedirectRow]: ...
    async def show_ip6_ra(
        self,
        *,
        interface: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowIp6RaRow]: ...
    async def show_ip6_sv_reassembly(
        self,
        *,
        details: bool | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> ShowIp6SvReassembly: ...
    async def show_ip6_table(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowIp6TableRow]: ...
    async def show_ip_arp(
        self,
        *,
        interface: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def show_ip_arp_proxy(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def show_ip_dad(
        self,
        *,
        interface: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowIpDadRow]: ...
    async def show_ip_fib(
        self,
        *,
        table: int | str | None = None,
        prefix: str | None = None,
        address: str | None = None,
        summary: bool | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowIpFibRow]: ...
    async def show_ip_icmp_rate_limit(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowIpIcmpRateLimitRow]: ...
    async def show_ip_mfib(
        self,
        *,
        table: int | str | None = None,
        group: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowIpMfibRow]: ...
    async def show_ip_neighbor(
        self,
        *,
        interface: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def show_ip_neighbor_config(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowIpNeighborConfigRow]: ...
    async def show_ip_neighbor_counters(
        self,
        *,
        interface: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowIpNeighborCountersRow]: ...
    async def show_ip_neighbors(
        self,
        *,
        interface: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowIpNeighborsRow]: ...
    async def show_ip_pmtu(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowIpPmtuRow]: ...
    async def show_ip_punt_redirect(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowIpPuntRedirectRow]: ...
    async def show_ip_table(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowIpTableRow]: ...
    async def show_ipfix_exporter(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> ShowIpfixExporter: ...
    async def show_ipip_tunnel(
        self,
        *,
        interface: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowIpipTunnelRow]: ...
    async def show_l2fib(
        self,
        *,
        all: bool | None = None,
        verbose: bool | None = None,
        learn: bool | None = None,
        add: bool | None = None,
        domain: int | str | None = None,
        max: int | str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> ShowL2fib: ...
    async def show_l2fib_events(
        self,
        *,
        since: int | str | None = None,
        max: int | str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> ShowL2fibEvents: ...
    async def show_l2patch(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowL2patchRow]: ...
    async def show_l2tpv3(
        self,
        *,
        interface: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowL2tpv3Row]: ...
    async def show_lacp(
        self,
        *,
        interface: str | None = None,
        details: bool | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowLacpRow]: ...
    async def show_lcp(
        self,
        *,
        interface: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowLcpRow]: ...
    async def show_lcp_punt(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowLcpPuntRow]: ...
    async def show_lcp_sync(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowLcpSyncRow]: ...
    async def show_lisp_adjacencies(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowLispAdjacenciesRow]: ...
    async def show_lisp_eid_table(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowLispEidTableRow]: ...
    async def show_lisp_eid_table_map(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowLispEidTableMapRow]: ...
    async def show_lisp_locator_set(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowLispLocatorSetRow]: ...
    async def show_lisp_map_resolver(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowLispMapResolverRow]: ...
    async def show_lisp_statistics(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowLispStatisticsRow]: ...
    async def show_lisp_status(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> ShowLispStatus: ...
    async def show_lldp(
        self,
        *,
        detail: bool | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowLldpRow] | ShowLldp: ...
    async def show_load_balance(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowLoadBalanceRow]: ...
    async def show_logging(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowLoggingRow]: ...
    async def show_logging_configuration(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> ShowLoggingConfiguration: ...
    async def show_map_customer(
        self,
        *,
        address: str,
        port: int | str,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> ShowMapCustomer: ...
    async def show_map_domain(
        self,
        *,
        index: int | str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowMapDomainRow]: ...
    async def show_map_fragments(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> ShowMapFragments: ...
    async def show_map_interface(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowMapInterfaceRow]: ...
    async def show_map_rule_index(
        self,
        *,
        index: int | str,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowMapRuleIndexRow]: ...
    async def show_map_stats(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> ShowMapStats: ...
    async def show_memif(
        self,
        *,
        interface: str | None = None,
        descriptors: bool | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> ShowMemif: ...
    async def show_memory(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> ShowMemory: ...
    async def show_mfib_signals(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowMfibSignalsRow]: ...
    async def show_mld(
        self,
        *,
        interface: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowMldRow]: ...
    async def show_mld_config(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowMldConfigRow]: ...
    async def show_mld_groups(
        self,
        *,
        interface: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowMldGroupsRow]: ...
    async def show_mld_proxy_dev(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowMldProxyDevRow]: ...
    async def show_mld_timers(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowMldTimersRow]: ...
    async def show_mode(
        self,
        *,
        interface: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowModeRow]: ...
    async def show_mpls_fib(
        self,
        *,
        table: int | str | None = None,
        label: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowMplsFibRow]: ...
    async def show_mpls_interface(
        self,
        *,
        interface: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowMplsInterfaceRow]: ...
    async def show_mpls_tunnel(
        self,
        *,
        interface: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowMplsTunnelRow]: ...
    async def show_nat44_addresses(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> ShowNat44Addresses: ...
    async def show_nat44_blocks(
        self,
        *,
        inside: str | None = None,
        outside: str | None = None,
        port: int | str | None = None,
        max: int | str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowNat44BlocksRow]: ...
    async def show_nat44_ha(self, *, json: bool | None = None, if_generation: str | None = None) -> Any: ...
    async def show_nat44_helpers(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowNat44HelpersRow]: ...
    async def show_nat44_interfaces(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowNat44InterfacesRow]: ...
    async def show_nat44_log(self, *, json: bool | None = None, if_generation: str | None = None) -> Any: ...
    async def show_nat44_mappings(
        self,
        *,
        inside: str | None = None,
        outside: str | None = None,
        port: int | str | None = None,
        max: int | str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowNat44MappingsRow]: ...
    async def show_nat44_sessions(
        self,
        *,
        local: str | None = None,
        external: str | None = None,
        remote: str | None = None,
        max: int | str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowNat44SessionsRow]: ...
    async def show_nat44_static_mappings(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowNat44StaticMappingsRow]: ...
    async def show_nat44_subscribers(
        self,
        *,
        inside: str | None = None,
        max: int | str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowNat44SubscribersRow]: ...
    async def show_nat44_summary(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> ShowNat44Summary: ...
    async def show_nat64_bib(
        self,
        *,
        all: bool | None = None,
        tcp: bool | None = None,
        udp: bool | None = None,
        icmp: bool | None = None,
        max: int | str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowNat64BibRow]: ...
    async def show_nat64_ha(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> ShowNat64Ha: ...
    async def show_nat64_interfaces(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowNat64InterfacesRow]: ...
    async def show_nat64_pool(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> ShowNat64Pool: ...
    async def show_nat64_prefix(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowNat64PrefixRow]: ...
    async def show_nat64_session_table(
        self,
        *,
        all: bool | None = None,
        tcp: bool | None = None,
        udp: bool | None = None,
        icmp: bool | None = None,
        max: int | str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowNat64SessionTableRow]: ...
    async def show_nat64_summary(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> ShowNat64Summary: ...
    async def show_nat64_timeouts(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowNat64TimeoutsRow]: ...
    async def show_nat66_bindings(
        self,
        *,
        all: bool | None = None,
        tcp: bool | None = None,
        udp: bool | None = None,
        icmp: bool | None = None,
        max: int | str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowNat66BindingsRow]: ...
    async def show_nat66_interfaces(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowNat66InterfacesRow]: ...
    async def show_nat66_pool(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> ShowNat66Pool: ...
    async def show_nat66_sessions(
        self,
        *,
        all: bool | None = None,
        tcp: bool | None = None,
        udp: bool | None = None,
        icmp: bool | None = None,
        max: int | str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowNat66SessionsRow]: ...
    async def show_nat66_static_mappings(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowNat66StaticMappingsRow]: ...
    async def show_nat66_summary(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> ShowNat66Summary: ...
    async def show_nat66_timeouts(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowNat66TimeoutsRow]: ...
    async def show_nat_ha(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> ShowNatHa: ...
    async def show_nat_log(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> ShowNatLog: ...
    async def show_nat_mss_clamping(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> ShowNatMssClamping: ...
    async def show_nat_timeouts(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowNatTimeoutsRow]: ...
    async def show_node(
        self,
        *,
        node: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> ShowNode: ...
    async def show_node_counters(
        self,
        *,
        verbose: bool | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def show_npt66_address(
        self,
        *,
        address: str,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowNpt66AddressRow]: ...
    async def show_npt66_bindings(
        self,
        *,
        interface: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowNpt66BindingsRow]: ...
    async def show_one_adjacencies(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def show_one_eid_table(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def show_one_eid_table_map(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def show_one_locator_set(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def show_one_map_resolver(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def show_one_statistics(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def show_one_status(self, *, json: bool | None = None, if_generation: str | None = None) -> Any: ...
    async def show_outacl(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowOutaclRow]: ...
    async def show_packet_generator(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowPacketGeneratorRow]: ...
    async def show_pcap(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowPcapRow]: ...
    async def show_plugins(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowPluginsRow]: ...
    async def show_policer(
        self,
        *,
        name: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowPolicerRow]: ...
    async def show_policer_classify(
        self,
        *,
        interface: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowPolicerClassifyRow]: ...
    async def show_policer_interface(
        self,
        *,
        interface: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowPolicerInterfaceRow]: ...
    async def show_policer_subscriber(
        self,
        *,
        address: str | None = None,
        verbose: bool | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowPolicerSubscriberRow]: ...
    async def show_prom(self, *, json: bool | None = None, if_generation: str | None = None) -> ShowProm: ...
    async def show_qos_egress_map(
        self,
        *,
        map: int | str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowQosEgressMapRow]: ...
    async def show_qos_mark(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowQosMarkRow]: ...
    async def show_qos_record(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowQosRecordRow]: ...
    async def show_qos_store(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowQosStoreRow]: ...
    async def show_run(
        self,
        *,
        max: bool | None = None,
        what: Literal["summary", "verbose"] | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def show_running_config(
        self,
        *,
        yaml: bool | None = None,
        secrets: bool | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> ShowRunningConfig: ...
    async def show_runtime(
        self,
        *,
        max: bool | None = None,
        what: Literal["summary", "verbose"] | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> ShowRuntime: ...
    async def show_schema(
        self,
        *,
        command: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def show_sflow(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> ShowSflow: ...
    async def show_shaper(
        self,
        *,
        name: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowShaperRow]: ...
    async def show_shaper_buffers(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowShaperBuffersRow]: ...
    async def show_shaper_interface(
        self,
        *,
        interface: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowShaperInterfaceRow]: ...
    async def show_shaper_subscribers(
        self,
        *,
        id: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowShaperSubscribersRow]: ...
    async def show_shaper_top(
        self,
        *,
        count: int | str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowShaperTopRow]: ...
    async def show_siit(self, *, json: bool | None = None, if_generation: str | None = None) -> ShowSiit: ...
    async def show_siit_address(
        self,
        *,
        address: str,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowSiitAddressRow]: ...
    async def show_sr_encaps_hop_limit(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowSrEncapsHopLimitRow]: ...
    async def show_sr_encaps_source_addr(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowSrEncapsSourceAddrRow]: ...
    async def show_sr_hmac(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowSrHmacRow]: ...
    async def show_sr_hmac_policy(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowSrHmacPolicyRow]: ...
    async def show_sr_l2_tunnels(
        self,
        *,
        interface: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowSrL2TunnelsRow]: ...
    async def show_sr_localsids(
        self,
        *,
        sid: str | None = None,
        locator: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowSrLocalsidsRow]: ...
    async def show_sr_mpls_policies(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowSrMplsPoliciesRow]: ...
    async def show_sr_mpls_steering_policies(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowSrMplsSteeringPoliciesRow]: ...
    async def show_sr_oam(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowSrOamRow]: ...
    async def show_sr_policies(
        self,
        *,
        bsid: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> ShowSrPolicies: ...
    async def show_sr_proxies(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowSrProxiesRow]: ...
    async def show_sr_steering_policies(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowSrSteeringPoliciesRow]: ...
    async def show_sr_vlan_tables(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowSrVlanTablesRow]: ...
    async def show_subscriptions(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowSubscriptionsRow]: ...
    async def show_syslog_sender(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> ShowSyslogSender: ...
    async def show_tap(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowTapRow]: ...
    async def show_teib(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowTeibRow]: ...
    async def show_threads(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> ShowThreads: ...
    async def show_trace(
        self,
        *,
        max: int | str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> ShowTrace: ...
    async def show_udp_decap(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowUdpDecapRow]: ...
    async def show_udp_encap(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowUdpEncapRow]: ...
    async def show_urpf(
        self,
        *,
        interface: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowUrpfRow] | ShowUrpf: ...
    async def show_version(
        self,
        *,
        verbose: bool | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> ShowVersion: ...
    async def show_vlan(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowVlanRow]: ...
    async def show_vrrp_vr(
        self,
        *,
        interface: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowVrrpVrRow]: ...
    async def show_vxlan_gpe_tunnel(
        self,
        *,
        interface: str | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowVxlanGpeTunnelRow]: ...
    async def show_vxlan_interface(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowVxlanInterfaceRow]: ...
    async def show_vxlan_tunnel(
        self,
        *,
        interface: str | None = None,
        raw: bool | None = None,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> list[ShowVxlanTunnelRow]: ...
    async def show_workers(
        self,
        *,
        json: bool | None = None,
        if_generation: str | None = None,
    ) -> ShowWorkers: ...
    async def siit_add_mapping(
        self,
        *,
        ipv4: str,
        ipv6: str,
        ip4: bool | None = None,
        ip6: bool | None = None,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def siit_add_prefix(
        self,
        *,
        prefix: str,
        ip4: bool | None = None,
        ip6: bool | None = None,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def siit_ip6_mtu(self, *, bytes: int | str, if_generation: str | None = None) -> Any: ...
    async def sr_hmac_key(
        self,
        *,
        id: int | str,
        secret: str,
        sha1: bool | None = None,
        sha256: bool | None = None,
        linux: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def sr_hmac_key_del(self, *, id: int | str, if_generation: str | None = None) -> Any: ...
    async def sr_localsid_address(
        self,
        *,
        sid: str | None = None,
        locator: str | None = None,
        fib_table: int | str | None = None,
        behavior: Literal["end"] | None = None,
        psp: bool | None = None,
        usp: bool | None = None,
        usd: bool | None = None,
        table: int | str | None = None,
        interface: list[SrLocalsidAddressArgumentInterfaceRow] | None = None,
        bsid: int | str | None = None,
        from_: list[SrLocalsidAddressArgumentFromRow] | None = None,
        arg_fe2: int | str | None = None,
        csid_bits: int | str | None = None,
        function: str | None = None,
        oif: str | None = None,
        iif: str | None = None,
        src: str | None = None,
        next: list[SrLocalsidAddressArgumentNextRow] | None = None,
        reduced: bool | None = None,
        hops: int | str | None = None,
        bypass: bool | None = None,
        flows: int | str | None = None,
        nat: bool | None = None,
        cache: bool | None = None,
        position: int | str | None = None,
        v4src: str | None = None,
        lookup_table: int | str | None = None,
        uplink: bool | None = None,
        sr_prefix: str | None = None,
        nhtype: Literal["ipv4", "ipv6", "non-ip"] | None = None,
        source: str | None = None,
        drop_in: bool | None = None,
        zero_checksum: bool | None = None,
        mapped: str | None = None,
        mapped_prefix: str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def sr_localsid_del_address(
        self,
        *,
        sid: str | None = None,
        locator: str | None = None,
        fib_table: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def sr_localsid_replace_address(
        self,
        *,
        sid: str | None = None,
        locator: str | None = None,
        fib_table: int | str | None = None,
        behavior: Literal["end"] | None = None,
        psp: bool | None = None,
        usp: bool | None = None,
        usd: bool | None = None,
        table: int | str | None = None,
        interface: list[SrLocalsidReplaceAddressArgumentInterfaceRow] | None = None,
        bsid: int | str | None = None,
        from_: list[SrLocalsidReplaceAddressArgumentFromRow] | None = None,
        arg_fe2: int | str | None = None,
        csid_bits: int | str | None = None,
        function: str | None = None,
        oif: str | None = None,
        iif: str | None = None,
        src: str | None = None,
        next: list[SrLocalsidReplaceAddressArgumentNextRow] | None = None,
        reduced: bool | None = None,
        hops: int | str | None = None,
        bypass: bool | None = None,
        flows: int | str | None = None,
        nat: bool | None = None,
        cache: bool | None = None,
        position: int | str | None = None,
        v4src: str | None = None,
        lookup_table: int | str | None = None,
        uplink: bool | None = None,
        sr_prefix: str | None = None,
        nhtype: Literal["ipv4", "ipv6", "non-ip"] | None = None,
        source: str | None = None,
        drop_in: bool | None = None,
        zero_checksum: bool | None = None,
        mapped: str | None = None,
        mapped_prefix: str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def sr_mpls_policy_add_bsid(
        self,
        *,
        bsid: int | str,
        next: list[SrMplsPolicyAddBsidArgumentNextRow],
        weight: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def sr_mpls_policy_del_bsid(self, *, bsid: int | str, if_generation: str | None = None) -> Any: ...
    async def sr_mpls_policy_mod_bsid(
        self,
        *,
        bsid: int | str,
        next: list[SrMplsPolicyModBsidArgumentNextRow] | None = None,
        weight: int | str | None = None,
        index: int | str | None = None,
        at: int | str | None = None,
        share: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def sr_mpls_steer_del_l3(
        self,
        *,
        prefix: str,
        fib_table: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def sr_mpls_steer_l3(
        self,
        *,
        prefix: str,
        bsid: int | str,
        fib_table: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def sr_policy_add_bsid(
        self,
        *,
        bsid: str,
        next: list[SrPolicyAddBsidArgumentNextRow] | None = None,
        weight: int | str | None = None,
        fib_table: int | str | None = None,
        spray: bool | None = None,
        encap: bool | None = None,
        encap_red: bool | None = None,
        insert: bool | None = None,
        insert_red: bool | None = None,
        hmac: int | str | None = None,
        encap_src: str | None = None,
        t_m_gtp4_d: bool | None = None,
        h_m_gtp4_d: bool | None = None,
        sr_prefix: str | None = None,
        v6src: str | None = None,
        nhtype: Literal["ipv4", "ipv6", "non-ip"] | None = None,
        lookup_table: int | str | None = None,
        drop_in: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def sr_policy_del_bsid(self, *, bsid: str, if_generation: str | None = None) -> Any: ...
    async def sr_policy_mod_bsid(
        self,
        *,
        bsid: str,
        next: list[SrPolicyModBsidArgumentNextRow] | None = None,
        weight: int | str | None = None,
        deleted: int | str | None = None,
        index: int | str | None = None,
        to: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def sr_steer_del_l2(
        self,
        *,
        interface: str,
        bsid: str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def sr_steer_del_l3(
        self,
        *,
        prefix: str,
        bsid: str | None = None,
        fib_table: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def sr_steer_l2(self, *, interface: str, bsid: str, if_generation: str | None = None) -> Any: ...
    async def sr_steer_l3(
        self,
        *,
        prefix: str,
        bsid: str,
        fib_table: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def sr_vlan_table(
        self,
        *,
        table: int | str,
        add: bool | None = None,
        del_: bool | None = None,
        untagged: bool | None = None,
        vlan: int | str | None = None,
        inner_vlan: int | str | None = None,
        interface: str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def test_l2patch_rx(
        self,
        *,
        rx: str,
        tx: str,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def trace_add(
        self,
        *,
        node: str,
        packets: int | str,
        verbose: bool | None = None,
        filter: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def trace_filter(
        self,
        *,
        node: str,
        include: bool | None = None,
        exclude: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def trace_filter_none(self, *, if_generation: str | None = None) -> Any: ...
    async def traceroute(
        self,
        *,
        address: str | None = None,
        on: str | None = None,
        source: str | None = None,
        table_id: int | str | None = None,
        hops: int | str | None = None,
        probes: int | str | None = None,
        wait: str | None = None,
        size: int | str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def udp_decap(
        self,
        *,
        outer: Literal["ip4", "ip6"],
        port: int | str,
        contents: Literal["ip4", "ip6", "mpls"],
        add: bool | None = None,
        del_: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def udp_encap_add(
        self,
        *,
        id: int | str,
        src: str,
        dst: str,
        src_port: int | str,
        dst_port: int | str,
        table_id: int | str | None = None,
        src_port_is_entropy: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def udp_encap_del(self, *, id: int | str, if_generation: str | None = None) -> Any: ...
    async def vrrp_peers(
        self,
        *,
        interface: str,
        vr_id: int | str,
        peer: list[str],
        ipv6: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def vrrp_proto(
        self,
        *,
        action: Literal["start", "stop"],
        interface: str,
        vr_id: int | str,
        ipv6: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def vrrp_vr_add(
        self,
        *,
        interface: str,
        vr_id: int | str,
        address: list[str],
        priority: int | str | None = None,
        interval: int | str | None = None,
        no_preempt: bool | None = None,
        accept_mode: bool | None = None,
        unicast: bool | None = None,
        ipv6: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def vrrp_vr_del(
        self,
        *,
        interface: str,
        vr_id: int | str,
        ipv6: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def vrrp_vr_track_bfd_add(
        self,
        *,
        interface: str,
        vr_id: int | str,
        peer_addr: str,
        priority: int | str,
        ipv6: bool | None = None,
        track_interface: str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def vrrp_vr_track_bfd_del(
        self,
        *,
        interface: str,
        vr_id: int | str,
        peer_addr: str,
        ipv6: bool | None = None,
        track_interface: str | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def vrrp_vr_track_if_add(
        self,
        *,
        interface: str,
        vr_id: int | str,
        track_interface: str,
        priority: int | str,
        ipv6: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
    async def vrrp_vr_track_if_del(
        self,
        *,
        interface: str,
        vr_id: int | str,
        track_interface: str,
        ipv6: bool | None = None,
        if_generation: str | None = None,
    ) -> Any: ...
