"""The night's figures held against those that SQL gives: both sides of each total must agree.

A figure that one engine does not tell counts as 0 there, so a total that one of them forgot shows,
unless it was of nothing.
"""

from collections.abc import Iterable, Iterator

from recon.model.words import ControlTotal

SECOND_ENGINE = "T14"
NAME = "figures of this night's totals = those that SQL gives"
SHEETS = "T13"
"""Held against SQL by itself, once the workbook is read back."""
BY_RULE = "match by "
"""Before a rule: what T13 calls the matches that it found."""
IN_FILE = " in the file with SHA-256 "
"""Behind a section: what T13 calls the file that a workbook names for it, before the hash."""
SHEETS_IN_SQL = "figures of the sheets = those that SQL gives"
KEPT = "what was sent and compared is kept, and nothing of it is proven: run the night again"
SHOWN_MAX = 50
"""Figures that differ which are named one by one."""

Key = tuple[str, str, str, str, str, str]


def second_proof(
    totals: Iterable[ControlTotal],
    *,
    by_sql: Iterable[ControlTotal],
    account: tuple[str, str],
    name: str = NAME,
) -> tuple[ControlTotal, ...]:
    """T14: how many figures there are and how many agree; then each that does not, by its name.

    Args:
        totals: as the night computed them.
        by_sql: as SQL gives them; those of T14 are its own and must agree by themselves.
        account: merchant and account of the night.
        name: what the line that counts them says.
    """
    wanted = {key_of(total): total for total in totals if total.id != SECOND_ENGINE}
    given = {key_of(total): total for total in by_sql}
    every = sorted({*wanted, *given})
    unlike = [key for key in every if not _agrees(key, wanted=wanted, given=given)]
    figures = ControlTotal(
        SECOND_ENGINE, name, *account, "", "count", len(every), len(every) - len(unlike)
    )
    named = [total for key in unlike for total in _named(key, wanted=wanted, given=given)]
    return (figures, *named[:SHOWN_MAX])


def not_run(why: str, *, account: tuple[str, str], name: str = NAME) -> ControlTotal:
    """T14 of a night whose SQL did not come to its end: it proves nothing.

    `why` begins with the statement that was asked.
    """
    return ControlTotal(SECOND_ENGINE, f"{name}: {why}; {KEPT}", *account, "", "count", 1, 0)


def in_file(section: str, *, sha256: str) -> str:
    """The section of T13 of the file that holds all rows of a section."""
    return f"{section}{IN_FILE}{sha256}"


def key_of(total: ControlTotal) -> Key:
    """What a figure is of."""
    account_currency = total.merchant_id, total.account_id, total.currency
    return total.id, total.name, *account_currency, total.measure


def _agrees(key: Key, *, wanted: dict[Key, ControlTotal], given: dict[Key, ControlTotal]) -> bool:
    if key[0] == SECOND_ENGINE:
        return given[key].passed
    return _sides(wanted.get(key)) == _sides(given.get(key))


def _named(
    key: Key, *, wanted: dict[Key, ControlTotal], given: dict[Key, ControlTotal]
) -> Iterator[ControlTotal]:
    """The sides that differ, each as a total of its own under the name of the total."""
    if key[0] == SECOND_ENGINE:
        yield given[key]
        return
    number, name, *_ = key
    pairs = zip(("left", "right"), _sides(wanted.get(key)), _sides(given.get(key)), strict=True)
    for side, ours, theirs in pairs:
        if ours != theirs:
            title = f"{name}: {side} = {side} by SQL"
            yield ControlTotal(number, title, key[2], key[3], key[4], key[5], ours, theirs)


def _sides(total: ControlTotal | None) -> tuple[int, int]:
    return (0, 0) if total is None else (total.left, total.right)
