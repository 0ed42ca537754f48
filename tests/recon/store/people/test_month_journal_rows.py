from dataclasses import replace
from datetime import date

from recon.store.database import history
from recon.store.database.engine import Store
from recon.store.people.month_journal_rows import (
    MonthJournal,
    OutOfClose,
    handed_out_of_closes,
    note_handed_out,
    out_of_closes,
)
from tests.recon.store.people.test_closed_months import CLOSED, NOW, OWN

DAY = date(2026, 11, 30)
OTHER = ("100042", "100042002")
NAME = "accrual-fees-EUR-2026-11"
LONG = f"accrual-fees-{'X' * 300}"


def test_what_a_close_handed_out_is_known_by_account_and_close(store: Store) -> None:
    """The last close counts; another account's accrual of the same name is another journal."""
    with store.writing() as connection:
        for closed in (CLOSED, replace(CLOSED, number=2)):
            is_again = closed.number == 2
            journals = [MonthJournal(name, "accrual", DAY, "EUR", 1234) for name in (NAME, LONG)]
            note_handed_out(
                connection,
                closed,
                journals=journals,
                written_as="xero" if is_again else "csv",
                is_again=is_again,
                at=NOW,
            )

    with store.reading() as connection:
        out = handed_out_of_closes(connection, OWN, [NAME, LONG, "reversal-fees-EUR-2026-11"])
        assert out == {NAME: OutOfClose(2, NOW), LONG: OutOfClose(2, NOW)}
        assert handed_out_of_closes(connection, OTHER, [NAME]) == {}
        listed = out_of_closes(connection)
        assert [(out.account, out.month, out.format) for out in listed] == [
            (OWN, "2026-11", "xero")
        ] * 2
        assert listed[0].journal == MonthJournal(NAME, "accrual", DAY, "EUR", 1234)
        assert history.verify(connection)[1] == ""
