"""What the signer's own file lets pass without people, counted in its book."""

from dataclasses import replace
from datetime import datetime
from decimal import Decimal

from recon.model.money import Money, exponent
from recon.model.words import InstructionKind
from recon.signer.configured import COUNTS_AS, RuleBounds, SignerFile
from recon.signer.signed_book import SignedBook, SignedRow


class Limits:
    """What the own limits still allow, counted as the rows of one list go by."""

    def __init__(
        self,
        given: SignerFile,
        book: SignedBook,
        *,
        account: str,
        kind: InstructionKind,
        at: datetime,
    ) -> None:
        """Of one account and kind, as they stand at an instant."""
        self._account = given.accounts[account]
        self._name = account
        self._kind = kind
        # What uses up the same limit is counted together.
        self._kinds = [other for other, whose in COUNTS_AS.items() if whose is COUNTS_AS[kind]]
        self._book = book
        self._at = at
        self._used: dict[str, tuple[int, int]] = {}

    def taken(self, row: SignedRow, *, currency: str) -> SignedRow | str:
        """The row as one that a rule let pass, or why none does."""
        used = self._account.bounds(self._kind, currency=currency)
        if used is None:
            return f"no {self._kind.value} {currency} is signed without people".replace("  ", " ")
        name, bounds = used
        if name not in self._used:
            self._used[name] = self._book.used(
                self._name, kinds=self._kinds, counts_as=name, at=self._at
            )
        count, units = self._used[name]
        after = (count + 1, units + row.minor_units)
        if why := _beyond(bounds, row.minor_units, after=after, currency=currency):
            return why
        self._used[name] = after
        return replace(row, counts_as=name, by_rule=True)


def _beyond(bounds: RuleBounds, minor_units: int, *, after: tuple[int, int], currency: str) -> str:
    count, units = after
    if count > bounds.count:
        return f"the {bounds.count} of 24 hours are used up"
    for name, bound, amount in (("one", bounds.item, minor_units), ("24 hours", bounds.day, units)):
        if bound is not None and Decimal(amount).scaleb(-exponent(currency)) > bound:
            shown = Money.of_minor_units(amount, currency=currency)
            return f"the own limit of {name} is {bound} {currency}, not {shown}"
    return ""
