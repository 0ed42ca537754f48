"""The same rows in another order, for tests that nothing hangs on it."""

from dataclasses import replace
from typing import Any

from recon.matching.frames.sources import Sources


def turned(sources: Sources) -> Sources:
    """The rows of every frame, of the bank's entries and the rejects the other way round."""
    names = ("orders", "gateway", "ledger", "instructions", "settlement", "universe")
    given = {name: frame for name in names if (frame := getattr(sources, name)) is not None}
    frames: dict[str, Any] = {
        name: frame.iloc[::-1].reset_index(drop=True) for name, frame in given.items()
    }
    bank = sources.bank
    if bank is not None:
        bank = replace(bank, entries=bank.entries.iloc[::-1].reset_index(drop=True))
    return replace(sources, bank=bank, rejects=sources.rejects[::-1], **frames)
