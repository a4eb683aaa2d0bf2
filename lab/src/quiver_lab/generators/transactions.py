"""What quiver-tg answers about transactions (`stateful` in a profile), as models."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from quiver_lab.generators.answers import Answer, LatencyAnswer


class TransactionCounts(Answer):
    """The transactions of one side: `attempted` = `successful` + `failed` + `open`, always."""

    attempted: int = Field(ge=0)
    started: int = Field(ge=0)
    connected: int = Field(ge=0)
    successful: int = Field(ge=0)
    failed: int = Field(ge=0)
    open: int = Field(ge=0)
    open_max: int = Field(ge=0)
    failures: dict[str, int]
    """Those that failed, by why: timeout, refused, reset, unreachable, ..."""


class TransactionRates(Answer):
    """What a side does now, each a second."""

    attempted_cps: float = 0.0
    connected_cps: float = 0.0
    successful_cps: float = 0.0
    failed_cps: float = 0.0
    tx_pps: float = 0.0
    rx_pps: float = 0.0
    retransmitted_pps: float = 0.0


class Side(Answer):
    """Clients or servers."""

    transactions: TransactionCounts
    packets: dict[str, int]
    """Packets sent and received, sent again and why, and what nobody could make anything of."""
    rates: TransactionRates | None = None
    """Only while it is measured."""


class Way(Answer):
    """Packets from one side to the other: `offered` = `received` + `lost`, always."""

    from_port: int = Field(alias="from")
    to_port: int = Field(alias="to")
    offered: int = Field(ge=0)
    received: int = Field(ge=0)
    lost: int


class TransactionsNow(Answer):
    """What transactions do now."""

    kind: Literal["udp", "tcp"]
    rate_cps: float | Literal["max"] | None = None
    is_paused: bool = False
    clients: Side | None = None
    servers: Side | None = None


class TransactionsResult(Answer):
    """One measurement. bin/quiver-tg/stateful/README.md says what each count is."""

    measurement: int = 0
    kind: Literal["udp", "tcp"]
    intended: int | None
    not_attempted: int = Field(ge=0)
    duration_s: float = Field(gt=0)
    attempted_cps: float
    successful_cps: float
    tx_pps: float
    rx_pps: float
    per_direction: tuple[Way, ...] = ()
    unready_hosts: int = 0
    tx_ring_full: int = 0
    limited_by_generator: bool = False
    interrupted: bool = False
    clients: Side | None = None
    servers: Side | None = None
    connect_ns: LatencyAnswer | None = None
    transaction_ns: LatencyAnswer | None = None
