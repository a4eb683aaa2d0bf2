"""What may stand under `forwarder:` for a peer of Quiver's, and `host:` for any of them: where it runs."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

PEER_FRAME_BYTES_MAX = 1_518
"""DPDK's ports are left at their own MTU of 1,500."""
FLOW_ROUTES_MAX = 50_000
"""Each way: each destination is an entry of Open vSwitch's flow cache too, which holds 200,000."""
SWITCH_STATIONS_MAX = 500_000
"""Behind each port: its MAC table has room for a million."""
INTERFACE_NAME_BYTES_MAX = 15


class PeerPart(BaseModel):
    """A part of a scenario: immutable, and an unknown key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Host(PeerPart):
    """Another machine, reached by SSH, on which the forwarder runs; the generator stays here."""

    address: str = Field(min_length=1, max_length=255)
    port: int = Field(default=22, ge=1, le=65_535)
    user: str | None = None
    """Left out: whoever runs the lab. Forwarders need root's rights there."""
    key: str | None = None
    """A private key's file; left out: ~/.ssh and the agent, as ssh does it."""
    known_hosts: str | None = None
    """Left out: ~/.ssh/known_hosts. A host that is not in it is refused."""
    wires: dict[str, str] = Field(min_length=2, max_length=2)
    """How the machines are connected: an interface here, and the one there at its other end; the first
    pair is port 0."""
    programs: str | None = None
    """The folder there that holds quiverd; left out: found by its $PATH."""
    cores: tuple[int, ...] = ()
    """CPUs of the workers there; left out: the last ones. The main thread takes the first."""

    @field_validator("wires")
    @classmethod
    def _are_interfaces(cls, wires: dict[str, str]) -> dict[str, str]:
        for name in (*wires, *wires.values()):
            if not 0 < len(name) <= INTERFACE_NAME_BYTES_MAX or "/" in name or " " in name:
                raise ValueError(f"{name!r} is no interface's name")
        if len(set(wires.values())) != len(wires):
            raise ValueError("both interfaces here lead to the same one there")
        return wires

    @property
    def here(self) -> tuple[str, str]:
        """The generator's interfaces."""
        first, second = self.wires
        return first, second

    @property
    def there(self) -> tuple[str, str]:
        """The forwarder's."""
        first, second = self.wires.values()
        return first, second

    @property
    def quiverd(self) -> str:
        """Quiver's program there."""
        return str(PurePosixPath(self.programs) / "quiverd") if self.programs else "quiverd"


class TestpmdForwarder(PeerPart):
    """DPDK's testpmd on one core: what moving packets costs, and nothing else."""

    __test__ = False

    kind: Literal["testpmd"]
    workers: Literal[1] = 1
    mode: Literal["io", "mac", "macswap"] = "io"
    """Frames as they are; with new MAC addresses; with both swapped."""
    host: Host | None = None

    def problem(self, asked: Requirements) -> str | None:
        """Why it cannot do this; None if it can."""
        if asked.path != "l2xc":
            return f"path: testpmd looks nothing up: it does l2xc, not {asked.path}"
        return asked.problem_of_dpdk()


class OpenVSwitchForwarder(PeerPart):
    """Open vSwitch's userspace datapath over DPDK, on one core."""

    kind: Literal["open-vswitch"]
    workers: Literal[1] = 1
    host: Host | None = None

    def problem(self, asked: Requirements) -> str | None:
        """Why it cannot do this; None if it can."""
        if asked.path == "l2patch":
            return "path: Open vSwitch has no patch; l2xc is its nearest"
        if asked.path in ("ip4", "ip6"):
            if asked.table != "consecutive":
                return (
                    f"table: Open vSwitch has no routes, it is given a flow for each: kind consecutive, "
                    f"not {asked.table}"
                )
            if asked.count > FLOW_ROUTES_MAX:
                return f"table.count: a flow a route: at most {FLOW_ROUTES_MAX:,} each way here"
        elif asked.path not in ("l2xc", "l2bd"):
            return f"path: Open vSwitch is measured with l2xc, l2bd, ip4, ip6, not with {asked.path}"
        if asked.path == "l2bd" and asked.count > SWITCH_STATIONS_MAX:
            return f"table.count: Open vSwitch learns at most {SWITCH_STATIONS_MAX:,} stations each way"
        return asked.problem_of_dpdk()


class VppForwarder(PeerPart):
    """VPP, given the commands that Quiver is given."""

    kind: Literal["vpp"]
    workers: int = Field(default=1, ge=1, le=64)
    buffers: int = Field(default=16_384, ge=1_024, le=4_194_304)
    program: str = "vpp"
    host: Host | None = None

    @model_validator(mode="after")
    def _is_a_program(self) -> Self:
        if not self.program.strip():
            raise ValueError("program: VPP's name or path; leave it out for `vpp`")
        return self


class Requirements(PeerPart):
    """What a scenario asks of a forwarder, as far as a peer may say no."""

    path: str
    table: str
    count: int
    """Routes or stations each way."""
    frame: int | Literal["imix"]
    link_role: str
    tags: str

    def problem_of_dpdk(self) -> str | None:
        """What DPDK's ports do not do here."""
        if self.tags != "none":
            return "tags: only Quiver and VPP are measured with them"
        if isinstance(self.frame, int) and self.frame > PEER_FRAME_BYTES_MAX:
            return f"frame: DPDK's ports take up to {PEER_FRAME_BYTES_MAX:,} bytes here, not {self.frame:,}"
        if self.link_role != "master":
            return "link.role: DPDK's memif is the master here; leave role out"
        return None


PEERS = (TestpmdForwarder, OpenVSwitchForwarder)
"""Those that may say no to a scenario."""
