"""Frames that were not sent: whose doing that is."""

from __future__ import annotations

import pytest

from quiver_lab.generators.answers import Result

ANSWER = {
    "intended": 1_000,
    "offered": 900,
    "received": 890,
    "lost": 10,
    "duration_s": 1.0,
}


def test_frames_that_the_forwarder_did_not_take_are_its_own_and_not_the_generators() -> None:
    refused = Result.model_validate({**ANSWER, "not_sent": {"ring_full": 100}}).trial(1_000.0)
    assert (refused.lost, refused.refused, refused.not_forwarded) == (10, 100, 110)
    assert refused.loss_ratio == pytest.approx(0.11)
    assert not refused.short_of_frames
    held_up = Result.model_validate({**ANSWER, "not_sent": {"held_up": 100}}).trial(1_000.0)
    assert held_up.short_of_frames
    assert held_up.not_forwarded == 10
