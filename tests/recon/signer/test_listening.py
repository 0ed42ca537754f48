"""The socket, the log and the rate_limiter: who may come in, and what is written down."""

import json
import stat
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from recon.model.errors import ConfigurationError, UsageError
from recon.signer.configured import signer_settings
from recon.signer.server import AskedLog, RateLimiter, listening, shown
from recon.signer.signing import asked_of
from tests.recon.signer.conftest import Desk, write_rules

CARD = "4929780164523877"


def test_the_log_has_ids_and_amounts_and_nothing_private(tmp_path: Path) -> None:
    """Of a payment only that one was asked for; of a row no reason; card numbers are cut."""
    row = {"transaction_id": "T1", "refund_amount": "1.00", "refund_reason": "Ann Quill"}
    document = {"merchant_id": "1", "account_id": "2", "fields": {}, "rows": [row]}
    refund = asked_of({**document, "template": "refund"})
    paid = asked_of({**document, "template": "authorise_card", "fields": {"card": CARD}})
    odd = asked_of({**document, "template": "refund", "rows": [{"order_no": CARD}]})
    with closing(AskedLog(tmp_path / "log")) as log:
        for asked in (refund, paid, odd):
            log.note("refused", at=datetime(2026, 11, 22, tzinfo=UTC), why="no", **shown(asked))
    text = (tmp_path / "log").read_text()
    assert (CARD in text, "Quill" in text) == (False, False)
    first, second, _ = map(json.loads, text.splitlines())
    assert first["rows"] == [{"transaction_id": "T1", "refund_amount": "1.00"}]
    assert "rows" not in second
    assert stat.S_IMODE((tmp_path / "log").stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "document",
    [None, [], {}, {"template": "refund"}, {"template": 1}, {"more": 1}, "text"],
)
def test_what_is_no_request_is_refused(document: object) -> None:
    """Without a word of what it said."""
    with pytest.raises(UsageError, match="not one that a signer understands"):
        asked_of(document)


def test_the_rate_limiter_lets_a_pace_pass() -> None:
    """A few at once, then as many as time gives; time that goes back gives nothing."""
    now = [0.0]
    rate_limiter = RateLimiter(2, seconds=lambda: now[0])
    assert [rate_limiter.lets_pass() for _ in range(5)] == [True, True, True, True, False]
    now[0] = 0.5
    assert [rate_limiter.lets_pass() for _ in range(2)] == [True, False]


def test_the_socket_is_for_its_owner_or_a_group(short_folder: Path) -> None:
    """Nobody else connects, whatever the umask; a group must exist."""
    for group, mode in (("", 0o600), ('group = "root"', 0o660)):
        given = signer_settings(write_rules(short_folder, desk=Desk(), head=group)).file
        with closing(listening(given)):
            assert stat.S_IMODE(given.socket.stat().st_mode) == mode
        given.socket.unlink()
    given = signer_settings(write_rules(short_folder, desk=Desk(), head='group = "no-such"')).file
    with pytest.raises(ConfigurationError, match="no group no-such"):
        listening(given)
