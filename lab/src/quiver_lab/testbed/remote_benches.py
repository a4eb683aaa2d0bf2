"""A bench whose forwarder stands on another machine: the same commands, with the interfaces and files of that
machine in place of memif's and this one's."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from quiver_lab.experiments.peer_settings import Host, OpenVSwitchForwarder, TestpmdForwarder, VppForwarder
from quiver_lab.experiments.scenario import LinuxForwarder, QuiverForwarder, Scenario
from quiver_lab.forwarders import Buffering, linux_wires, quiver, testpmd, vpp
from quiver_lab.forwarders.linux_wires import LinuxWires
from quiver_lab.forwarders.open_vswitch import BRIDGE, OpenVSwitch, SwitchConfig
from quiver_lab.forwarders.quiver import Quiver
from quiver_lab.forwarders.testpmd import Testpmd, TestpmdConfig, socket_devices
from quiver_lab.forwarders.vpp import Vpp, VppConfig
from quiver_lab.generators.profile import AfPacket, Port, Profile
from quiver_lab.machines import Machine
from quiver_lab.testbed.addresses import INTERFACES, PORTS, host_mac, interface_mac
from quiver_lab.testbed.benches import Bench, flows_of, generator_program, vpp_commands
from quiver_lab.testbed.cores import Cores
from quiver_lab.testbed.plan import make_kernel_plan, make_plan
from quiver_lab.testbed.traffic import make_memif_profile


def remote_cores(host: Host, machine: Machine, workers: int, here: Cores) -> Cores:
    """Which CPU there does what; the generator's is one of this machine."""
    chosen = host.cores
    if not chosen:
        count = int(machine.run(["nproc", "--all"]))
        if count < workers + 1:
            raise ValueError(f"{host.address} has {count} CPUs, and {workers} workers need {workers + 1}")
        chosen = tuple(range(count - workers, count))
    if len(chosen) != workers:
        raise ValueError(f"host.cores: {workers} workers need as many CPUs, and {len(chosen)} are named")
    return Cores(main=0, workers=chosen, generator=here.generator)


def make_remote_bench(
    scenario: Scenario, host: Host, machine: Machine, directory: Path, here: Cores
) -> Bench:
    """Write a scenario's files, there too, and say what to start."""
    forwarder = scenario.forwarder
    cores = remote_cores(host, machine, forwarder.workers, here)
    match forwarder:
        case LinuxForwarder():
            plan = make_kernel_plan(scenario, directory, cores)
            kernel = LinuxWires(plan.forwarder, directory, machine, host.there)
            return _bench(kernel, plan.profile, plan.forwarder.commands, host, linux_wires.BUFFERING)
        case QuiverForwarder():
            _raise_interfaces(host, machine)
            made = make_plan(scenario, directory, cores)
            config = replace(made.forwarder, commands=tuple(_moved(made.forwarder.commands, host, machine)))
            router = Quiver(config, machine, Path(host.quiverd))
            return _bench(router, made.profile, config.commands, host, quiver.SOCKET_BUFFERING)
        case VppForwarder():
            _raise_interfaces(host, machine)
            made = make_plan(scenario, directory, cores)
            lines = vpp_commands(_moved(made.forwarder.commands, host, machine))
            there = VppConfig(cores.main, cores.workers, forwarder.buffers, lines)
            return _bench(
                Vpp(there, machine, forwarder.program), made.profile, lines, host, vpp.SOCKET_BUFFERING
            )
        case TestpmdForwarder():
            _raise_interfaces(host, machine)
            more: tuple[str, ...] = ()
            if forwarder.mode == "mac":
                more = tuple(f"--eth-peer={port},{host_mac(port, 0)}" for port in range(PORTS))
            devices = socket_devices(host.there)
            mover = TestpmdConfig(devices, cores.workers[0], cores.main, forwarder.mode, more)
            profile = make_memif_profile(scenario, directory, cores)
            commands = (f"forward mode {forwarder.mode}", *more)
            return _bench(Testpmd(mover, machine), profile, commands, host, testpmd.SOCKET_BUFFERING)
        case OpenVSwitchForwarder():
            _raise_interfaces(host, machine)
            for device in (BRIDGE, "ovs-netdev"):
                machine.undo(f"ip link del {device}")
            flows = flows_of(scenario)
            switch = SwitchConfig(
                flows, socket_devices(host.there), cores.workers[0], cores.main, own_namespace=False
            )
            profile = make_memif_profile(scenario, directory, cores)
            return _bench(OpenVSwitch(switch, machine), profile, flows.rules, host, testpmd.SOCKET_BUFFERING)
    raise ValueError(f"a forwarder of kind {forwarder.kind} does not run on another machine")


def _bench(
    forwarder: Quiver | Vpp | Testpmd | OpenVSwitch | LinuxWires,
    profile: Profile,
    commands: Iterable[str],
    host: Host,
    buffering: Buffering,
) -> Bench:
    """With the generator at this machine's ends of the wires."""
    ports = tuple(Port(af_packet=AfPacket(interface=name)) for name in host.here)
    over = profile.model_copy(update={"ports": ports})
    return Bench(forwarder, over, tuple(commands), generator_program, buffering)


def _raise_interfaces(host: Host, machine: Machine) -> None:
    """Programs see the frames of an interface that is up and takes all; both as they were afterwards."""
    for name in host.there:
        word = shlex.quote(name)
        flags = int(machine.run(["cat", f"/sys/class/net/{name}/flags"]).strip(), 16)
        machine.undo(f"ip link set dev {word} promisc off {'' if flags & 1 else 'down'}")
        machine.run(["ip", "link", "set", "dev", name, "promisc", "on", "up"])


def _moved(lines: Iterable[str], host: Host, machine: Machine) -> Iterator[str]:
    """Commands for memif as commands for the machine's interfaces, their files copied there."""
    names = dict(zip(INTERFACES, (f"host-{name}" for name in host.there), strict=True))

    def renamed(text: str) -> str:
        for ours, theirs in names.items():
            text = text.replace(ours, theirs)
        return text

    port = 0
    for line in lines:
        if line.startswith("create memif socket "):
            continue
        if line.startswith("create interface memif "):
            yield f"create host-interface name {host.there[port]}"
            yield f"set interface mac address host-{host.there[port]} {interface_mac(port)}"
            port += 1
        elif line.startswith("exec "):
            path = Path(line.removeprefix("exec "))
            yield f"exec {machine.write(path.name, renamed(path.read_text()))}"
        else:
            yield renamed(line)
