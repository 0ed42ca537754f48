"""Saying something at the desk: its replies, its refusals, and no desk at all."""

from pathlib import Path

import pytest

from recon.desk.server import ask_desk
from recon.model.errors import GateClosedError, UsageError


def test_the_desk_replies(echo: Path) -> None:
    """What was said arrives as it was."""
    assert ask_desk(echo, "approve", body={"list": "ä"})["body"] == {"list": "ä"}


def test_a_refusal_keeps_its_kind(echo: Path) -> None:
    """The command ends with the exit code that the desk's own error has."""
    with pytest.raises(GateClosedError, match="the gate is closed"):
        ask_desk(echo, "closed", body={})


def test_without_a_desk_nothing_is_changed(tmp_path: Path) -> None:
    """And the sentence says what to start."""
    with pytest.raises(UsageError, match="recon desk"):
        ask_desk(tmp_path / "none.sock", "approve", body={})
