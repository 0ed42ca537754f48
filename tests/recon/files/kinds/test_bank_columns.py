"""Entries as columns: amounts, numbers and what is refused, whatever holds them."""

from collections.abc import Sequence

import pytest

from recon.files.formats.bank_records import EntryBlock, RawEntry, block_of
from recon.files.kinds.bank_columns import (
    StatementPlace,
    amounts_of,
    columns_of,
    numbers_of,
    refuse_unfit,
)
from recon.model.errors import SourceUnreadableError

WHERE = StatementPlace("b.xml", "DE1", "7")


def raw(amount: str, *, line: int = 1, currency: str = "EUR", **cells: object) -> RawEntry:
    """An entry."""
    told = {"credit": True, "booked_on": "2026-11-20", "value_on": "2026-11-20", **cells}
    return RawEntry(line=line, amount=amount, currency=currency, **told)  # type: ignore[arg-type] # all


def mixed(entries: Sequence[RawEntry]) -> list[RawEntry | EntryBlock]:
    """The first half as a block, the others one by one."""
    half = len(entries) // 2
    return [block_of(entries[:half]), *entries[half:]]


@pytest.mark.parametrize(
    ("currency", "texts", "minor"),
    [
        ("EUR", ("1.00", "0.07", "12", "3.5", "4."), [100, 7, 1200, 350, 400]),
        ("JPY", ("1", "20.", "300.00", "4000"), [1, 20, 300, 4000]),
        ("KWD", ("1.000", "2.5", "3"), [1000, 2500, 3000]),
    ],
)
def test_amounts_are_read_as_banks_write_them(
    currency: str, texts: Sequence[str], minor: list[int]
) -> None:
    """Zeros behind the last digit may be left out; a debit is negative."""
    for entries in (
        [raw(text, currency=currency) for text in texts],
        [raw(text, currency=currency, credit=False) for text in texts],
    ):
        sign = 1 if entries[0].credit else -1
        amounts = amounts_of(columns_of(mixed(entries)), currency=currency, where=WHERE)
        assert amounts.tolist() == [sign * amount for amount in minor]


@pytest.mark.parametrize("text", ["", "x", "1,00", "-1.00", "1.001", "1" * 30, "٣.00"])
def test_what_is_no_amount_is_refused(text: str) -> None:
    """Among many that are."""
    entries = [*(raw("1.00") for _ in range(5)), raw(text)]
    with pytest.raises(SourceUnreadableError, match="statement 7"):
        amounts_of(columns_of(mixed(entries)), currency="EUR", where=WHERE)


def test_every_entry_has_a_number_of_its_own() -> None:
    """Its place where the bank gives none; one that comes again is numbered on."""
    numbers = ["A", "", "A", "2", "", "A", ""]
    entries = [raw("1.00", entry_no=number) for number in numbers]
    for held in (entries, mixed(entries), [block_of(entries)]):
        found = numbers_of(columns_of([*held])).to_pylist()
        assert found == ["A", "2", "A#2", "2#2", "5", "A#3", "7"]
    alone = [raw("1.00", entry_no=number) for number in ("B", "A")]
    assert numbers_of(columns_of([*alone])).to_pylist() == ["B", "A"]


@pytest.mark.parametrize(
    ("odd", "match"),
    [
        ({"currency": "USD"}, "line 9 is an entry in USD, its account is in EUR"),
        ({"currency": ""}, "line 9 is an entry in no currency"),
        ({"booked_on": ""}, "line 9 is a booked entry without a day of booking"),
    ],
)
def test_an_entry_that_does_not_fit_is_named_by_its_line(odd: dict[str, str], match: str) -> None:
    """In a block and by itself; one that is not booked needs no day."""
    for at in (1, 4):
        entries = [raw("1.00") for _ in range(5)]
        entries[at] = raw("1.00", line=9, **odd)
        with pytest.raises(SourceUnreadableError, match=match):
            refuse_unfit(columns_of(mixed(entries)), currency="EUR", where=WHERE)
    waiting = [raw("1.00", booked=False, booked_on="")]
    refuse_unfit(columns_of([*waiting]), currency="EUR", where=WHERE)
