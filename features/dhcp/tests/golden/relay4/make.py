#!/usr/bin/python3
"""A client's DISCOVER goes to the server with option 82 (RFC 3046), the OFFER comes back to the client without it
(RFC 1542 §4.1.2), and clients that pretend are not relayed."""
import json

from scapy.all import BOOTP, DHCP, IP, UDP, Ether, Raw, wrpcap

E0, E1, CLIENT, SERVER = "02:fe:00:00:00:00", "02:fe:00:00:00:01", "02:00:00:00:00:0c", "02:00:00:00:00:05"
circuit = b"\x01\x06port 7\x02\x05rack1"
mac = bytes.fromhex(CLIENT.replace(":", ""))


def padded(packet):
    """A message of 300 bytes at least (RFC 951 §3)."""
    return packet / Raw(bytes(max(0, 300 - len(bytes(packet[BOOTP])))))


def asks(options, **fields):
    return padded(
        Ether(src=CLIENT, dst="ff:ff:ff:ff:ff:ff") / IP(src="0.0.0.0", dst="255.255.255.255")
        / UDP(sport=68, dport=67) / BOOTP(op=1, xid=7, chaddr=mac, **fields) / DHCP(options=options)
    )


def relayed(options):
    return padded(
        Ether(src=E1, dst=SERVER) / IP(src="10.0.0.1", dst="192.0.2.53", id=0, ttl=64) / UDP(sport=67, dport=67)
        / BOOTP(op=1, xid=7, hops=1, giaddr="10.0.0.1", chaddr=mac) / DHCP(options=options)
    )


def offer(ether, ip, dport, options, flags=0):
    fields = {"op": 2, "xid": 7, "giaddr": "10.0.0.1", "yiaddr": "10.0.0.9", "chaddr": mac, "flags": flags}
    return padded(ether / ip / UDP(sport=67, dport=dport) / BOOTP(**fields) / DHCP(options=options))


from_server = (Ether(src=SERVER, dst=E1), IP(src="192.0.2.53", dst="10.0.0.1"), 67)
discover = [("message-type", "discover"), ("hostname", b"pc")]
ours, end = ("relay_agent_information", circuit), "end"
plain = [("message-type", "offer"), ("server_id", "192.0.2.53")]
wrpcap("01-in.e0.pcap", [asks([*discover, end]), asks([*discover, ours, end])])
wrpcap("01-out.e1.pcap", [relayed([*discover, ours, end])])
json.dump(
    {"drops": {"dhcp-proxy": {"option-82-untrusted": 1}}, "events": {"dhcp-proxy": {"taken": 2, "to-server": 1}}},
    open("01-counters.json", "w"),
    indent=2,
)
wrpcap("02-in.e1.pcap", [
    offer(*from_server, [*plain, ours, end]),
    offer(*from_server, [*plain, ours, end], flags=0x8000),
])
to_client = IP(src="10.0.0.1", dst="10.0.0.9", id=0, ttl=64)
to_all = IP(src="10.0.0.1", dst="255.255.255.255", id=0, ttl=64)
wrpcap("02-out.e0.pcap", [
    offer(Ether(src=E0, dst=CLIENT), to_client, 68, [*plain, end]),
    offer(Ether(src=E0, dst="ff:ff:ff:ff:ff:ff"), to_all, 68, [*plain, end], flags=0x8000),
])
json.dump({"events": {"dhcp-proxy": {"to-client": 2}}}, open("02-counters.json", "w"), indent=2)
