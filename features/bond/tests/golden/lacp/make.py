#!/usr/bin/python3
"""A marker is answered, and a partner that does not know us is told who we are, and who it is."""
import json

from scapy.all import Ether, Raw, wrpcap
from scapy.contrib.lacp import LACP, MarkerProtocol, SlowProtocol

GROUP, BOND, PEER = "01:80:c2:00:00:02", "02:fe:00:00:00:b0", "02:00:00:00:00:02"
ACTIVE, SHORT, AGGREGATION, SYNC, COLLECTING = (1 << bit for bit in range(5))

ours = dict(actor_system_priority=65535, actor_system=BOND, actor_key=7, actor_port_priority=255, actor_port_number=1)
theirs = dict(actor_system_priority=4, actor_system=PEER, actor_key=5, actor_port_priority=6, actor_port_number=8)


def partner(of):
    return {name.replace("actor", "partner"): value for name, value in of.items()}


def pdu(source, actor, state, other, other_state):
    fields = dict(actor, actor_state=state, **partner(other), partner_state=other_state)
    return Ether(src=source, dst=GROUP) / SlowProtocol() / LACP(**fields)


base = ACTIVE | SHORT | AGGREGATION
nobody = dict(actor_system_priority=0, actor_system="00:00:00:00:00:00", actor_key=0, actor_port_priority=0, actor_port_number=0)
wrpcap("02-in.m0.pcap", [pdu(PEER, theirs, base | SYNC | COLLECTING, nobody, 0)])
# Its sync is not believed: it does not mean us.
wrpcap("02-out.m0.pcap", [pdu(BOND, ours, base, theirs, base | COLLECTING)])
json.dump({"events": {"lacp-input": {"lacpdu": 1}}}, open("02-counters.json", "w"), indent=2)
marker = Ether(src=PEER, dst=GROUP) / SlowProtocol() / MarkerProtocol(
    marker_type=1, requester_port=8, requester_system=PEER, requester_transaction_id=99)
answer = Ether(src=BOND, dst=GROUP) / SlowProtocol() / MarkerProtocol(
    marker_type=2, requester_port=8, requester_system=PEER, requester_transaction_id=99)
wrpcap("01-in.m0.pcap", [marker, Ether(src=PEER, dst=GROUP) / SlowProtocol(subtype=3) / Raw(b"\0" * 45)])
wrpcap("01-out.m0.pcap", [answer])
counters = {"events": {"lacp-input": {"marker-answered": 1}}, "drops": {"lacp-input": {"unknown-subtype": 1}}}
json.dump(counters, open("01-counters.json", "w"), indent=2)
