#!/usr/bin/python3
"""A newcomer is told who this router is; whoever is told goodbye is told nothing more."""
import json
import re
from pathlib import Path

from scapy.all import Ether, load_contrib, wrpcap

load_contrib("lldp")
from scapy.contrib.lldp import (  # noqa: E402
    LLDPDUChassisID, LLDPDUEndOfLLDPDU, LLDPDUManagementAddress, LLDPDUPortDescription, LLDPDUPortID,
    LLDPDUSystemCapabilities, LLDPDUSystemDescription, LLDPDUSystemName, LLDPDUTimeToLive,
)

GROUP, E0, PEER = "01:80:c2:00:00:0e", "02:fe:00:00:00:00", "02:00:00:00:00:02"
root = Path(__file__).resolve().parents[5]
version = re.search(r'^version = "(.*)"', (root / "Cargo.toml").read_text(), re.M)[1]
chassis = lambda mac: LLDPDUChassisID(subtype=4, id=mac)
port = lambda name: LLDPDUPortID(subtype=5, id=name)

hello = (
    Ether(src=PEER, dst=GROUP) / chassis(PEER) / port("eth0") / LLDPDUTimeToLive(ttl=120)
    / LLDPDUSystemName(system_name="peer") / LLDPDUEndOfLLDPDU()
)
ours = (
    Ether(src=E0, dst=GROUP) / chassis(E0) / port("e0") / LLDPDUTimeToLive(ttl=41)
    / LLDPDUPortDescription(description="uplink") / LLDPDUSystemName(system_name="one")
    / LLDPDUSystemDescription(description=f"Quiver {version}, a software router")
    / LLDPDUSystemCapabilities(
        router_available=1, mac_bridge_available=1, router_enabled=1, mac_bridge_enabled=0)
    / LLDPDUManagementAddress(
        management_address_subtype=1, management_address=bytes([192, 0, 2, 1]),
        interface_numbering_subtype=2, interface_number=0, object_id=b"")
    / LLDPDUEndOfLLDPDU()
)
goodbye = Ether(src=E0, dst=GROUP) / chassis(E0) / port("e0") / LLDPDUTimeToLive(ttl=0) / LLDPDUEndOfLLDPDU()

wrpcap("01-in.e0.pcap", [hello])
json.dump({"events": {"lldp-input": {"lldpdu": 1}}}, open("01-counters.json", "w"), indent=2)
wrpcap("02-out.e0.pcap", [ours])
wrpcap("03-out.e0.pcap", [goodbye])
