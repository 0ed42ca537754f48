"""T15, asked of each statement as it is read: opening and booked entries come to its closing.

Some banks turn the mark of a reversed entry and others leave it as it was, so a statement with
reversals is read both ways: the one that its balances prove holds, and where neither does nothing
of the file counts.
"""

import re
from dataclasses import dataclass
from typing import NoReturn

from recon.files.formats.raw_table import refuse
from recon.model.errors import AmountError
from recon.model.money import exponent, format_minor_units, parse_minor_units
from recon.privacy.shown_text import scrubbed

ASK_AGAIN = "nothing of the file counts: ask the bank for the statement again"
_NUMBER = re.compile(r"(?P<whole>[0-9]+)(?:\.(?P<fraction>[0-9]*))?", re.ASCII)


@dataclass(frozen=True, slots=True)
class StatementPlace:
    """How a statement is named in a sentence."""

    name: str
    account: str
    number: str

    def __str__(self) -> str:
        number = scrubbed(self.number) or "without a number"
        return f"statement {number} of account {scrubbed(self.account)}"

    def refuse(self, problem: str) -> NoReturn:
        """Give up on the whole file.

        Raises:
            SourceUnreadableError: always.
        """
        refuse(self.name, f"({self}): {problem}; {ASK_AGAIN}")


def units_of(text: str, *, currency: str, statement: StatementPlace) -> int:
    """Minor units of an amount as banks write it: zeros behind its last digit may be left out.

    Raises:
        SourceUnreadableError: it is no amount of the currency.
    """
    known = _NUMBER.fullmatch(text)
    if known is None:
        statement.refuse(f"{scrubbed(text)!r} is no amount")
    try:
        fraction = (known["fraction"] or "").ljust(exponent(currency), "0")
        exact = f"{known['whole']}.{fraction}" if fraction else known["whole"]
        return parse_minor_units(exact, currency=currency)
    except AmountError as error:
        statement.refuse(scrubbed(str(error)))


def signs_turned(
    *,
    opening: int | None,
    closing: int | None,
    plain: int,
    reversals: int,
    statement: StatementPlace,
    currency: str,
) -> bool:
    """Whether the reversals of a statement stand with the mark that they reverse.

    Args:
        opening: the balance before, signed minor units; None where there is none.
        closing: the balance behind.
        plain: the sum of the entries that reverse nothing.
        reversals: the sum of the others as they are marked.
        statement: whose file.
        currency: of all of them.

    Raises:
        SourceUnreadableError: the balances prove neither way.
    """
    if opening is None or closing is None or opening + plain + reversals == closing:
        return False
    if not reversals or opening + plain - reversals != closing:
        refuse_unbalanced(
            opening, plain + reversals, closing, statement=statement, currency=currency
        )
    return True


def refuse_unbalanced(
    opening: int, booked: int, closing: int, *, statement: StatementPlace, currency: str
) -> NoReturn:
    """Refuse a statement that does not add up, with its figures.

    Raises:
        SourceUnreadableError: always.
    """

    def shown(amount: int) -> str:
        return f"{format_minor_units(amount, currency=currency)} {currency}"

    statement.refuse(
        f"opening {shown(opening)} and booked entries of {shown(booked)} come to "
        f"{shown(opening + booked)}, but its closing balance is {shown(closing)}: the two are "
        f"{shown(abs(opening + booked - closing))} apart"
    )
