from pathlib import Path
from typing import Any

import pytest

from recon.model.errors import ConfigurationError
from recon.store.money.journal import StoredJournal


def test_a_key_that_changes_while_a_night_runs_is_the_next_nights(
    merchant: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A night goes on by the key it began with; one that does not fit stops the next before money.

    A gateway that changes its own key meanwhile signs wrongly: such a batch is doubted, and sending
    stops.
    """
    key = Path(merchant.folder) / "sign.key"
    key.write_text(merchant.variables.pop("RECON_SIGN_KEY"))
    key.chmod(0o600)
    merchant.variables["RECON_SIGN_KEY_FILE"] = str(key)
    first, second = [one for one in merchant.payments("captured") if one.currency == "EUR"][:2]
    merchant.drop("first.csv", merchant.order(first, status="refunded", action="refund"))
    claim = StoredJournal.claim

    def changed(self: StoredJournal, *given: Any, **named: Any) -> None:
        key.write_text("another key")
        claim(self, *given, **named)

    with monkeypatch.context() as patch:
        patch.setattr(StoredJournal, "claim", changed)
        merchant.night()
    kept = merchant.instruction_states()
    merchant.drop("second.csv", merchant.order(second, status="refunded", action="refund"))
    with pytest.raises(ConfigurationError, match="check the sign key"):
        merchant.night()

    assert (key.read_text(), kept) == ("another key", {"confirmed": 1})
    assert len(merchant.effects()) == 1
