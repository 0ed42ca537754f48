from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime

import pytest

from recon.model.business_date import BusinessCalendar
from recon.model.words import Reject, SourceFile, SourceKind
from recon.steps.files.arrived_rows import EVER, orders_lack_since
from recon.steps.files.incomplete import WHOLE_FILE, absent_sha256
from recon.store.database.engine import Store
from recon.store.nights import order_rows
from recon.store.nights.runs import Run

NOW = datetime(2026, 11, 21, 2, 0, tzinfo=UTC)
TONIGHT = date(2026, 11, 20)
SFTP = "sftp://shop"
Told = tuple[int, str, bool]
"""Day of November, name, whether it could be read."""


def covered(day: int) -> datetime:
    """The cut-off of a day of November."""
    return datetime(2026, 11, day + 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("told", "since"),
    [
        pytest.param([(20, "a-1", True)], None, id="complete"),
        pytest.param([], EVER, id="none ever"),
        pytest.param([(18, "a-1", True)], covered(18), id="none tonight"),
        pytest.param([(20, "a-1", False)], EVER, id="refused, nothing before"),
        pytest.param([(18, "a-1", True), (20, "a-2", False)], covered(18), id="refused"),
        pytest.param([(18, "a", True), (20, "a", False)], covered(18), id="refused, one name"),
        pytest.param([(20, "a", False), (20, "a", True)], None, id="mended under its name"),
        pytest.param(
            [(19, "a-1", True), (20, "a-2", True), (18, "b-1", True), (20, "b-2", False)],
            covered(18),
            id="of one sender",
        ),
        pytest.param(
            [(18, "a-1", True), (19, "a-2", False), (20, "b-1", True)],
            covered(18),
            id="refused yesterday, nothing since",
        ),
        pytest.param(
            [(18, "a-1", True), (19, "a-2", False), (20, "a-3", True)],
            None,
            id="refused yesterday, its sender delivered since",
        ),
        pytest.param(
            [(19, "readme", False), (20, "a-1", True)], None, id="refused yesterday, of nobody"
        ),
        pytest.param([(19, "a-1", True), (20, SFTP, False)], covered(19), id="a folder elsewhere"),
    ],
)
def test_payments_may_lack_their_order_since_the_last_complete_file(
    told: Sequence[Told], since: datetime | None, store: Store, run: Run
) -> None:
    """Of the sender whose file is refused tonight, or of all where none has come."""
    with store.writing() as connection:
        for number, (day, name, is_read) in enumerate(told):
            sha256 = absent_sha256(str(number)) if name == SFTP else f"{number}".rjust(64, "f")
            order_rows.insert_file(
                connection,
                replace(run, business_date=date(2026, 11, day)),
                rejects=[Reject(SourceKind.ORDERS, name, 0, WHOLE_FILE, "unread", "")][is_read:],
                source=SourceFile(
                    SourceKind.ORDERS, name, sha256, 1, 1, int(is_read), int(not is_read), 0
                ),
                at=NOW,
            )

    assert run.business_date == TONIGHT
    with store.reading() as connection:
        found = orders_lack_since(connection, run, until=10**9, calendar=BusinessCalendar.of())
    assert found == since
