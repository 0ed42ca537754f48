"""Which pay-outs an entry names: by batch id, and where two bear the same id, by the amount."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from recon.config.rules import Rules
from recon.matching.bank.expected import Payout
from recon.matching.bank.receipts import Receipt

Account = tuple[str, str]
"""Merchant and account."""


@dataclass(frozen=True, slots=True)
class Named:
    """One entry with what it names."""

    receipt: Receipt
    targets: frozenset[int] = frozenset()
    """Pay-outs that it names, by their number."""
    doubtful: frozenset[int] = frozenset()
    """Pay-outs of which it names one, and nothing says which."""
    elsewhere: Account | None = None
    """The account of a batch that it names and that is not paid out at this bank, or not yet."""

    @property
    def unnamed(self) -> bool:
        """Whether only its amount can say what it is."""
        return not self.receipt.names


def named_receipts(
    receipts: Sequence[Receipt],
    *,
    payouts: Sequence[Payout],
    owners: Mapping[str, Account],
    rules: Rules,
) -> list[Named]:
    """Every entry with the pay-outs that it names.

    Args:
        receipts: the entries in scope.
        payouts: as they are expected.
        owners: batch id, case-folded -> account, of all batches that are known.
        rules: which bank serves which account.
    """
    by_id: dict[str, list[Payout]] = {}
    for one in payouts:
        by_id.setdefault(one.batch_id.casefold(), []).append(one)
    return [_named(one, by_id=by_id, owners=owners, rules=rules) for one in receipts]


def _named(
    receipt: Receipt,
    *,
    by_id: Mapping[str, Sequence[Payout]],
    owners: Mapping[str, Account],
    rules: Rules,
) -> Named:
    served = rules.bank[receipt.bank].served
    targets: dict[int, Payout] = {}
    doubtful: set[int] = set()
    elsewhere: Account | None = None
    for name in sorted(receipt.names):
        here = [one for one in by_id.get(name, ()) if (one.merchant_id, one.account_id) in served]
        meant = _meant(here, receipt=receipt)
        if not here:
            elsewhere = elsewhere or owners.get(name)
        elif len(meant) == 1:
            targets[meant[0].number] = meant[0]
        else:
            doubtful |= {one.number for one in here}
    if len({one.currency for one in targets.values()}) > 1:
        return Named(receipt, doubtful=frozenset({*targets, *doubtful}))
    if doubtful:
        return Named(receipt, doubtful=frozenset({*doubtful, *targets}))
    return Named(receipt, frozenset(targets), elsewhere=None if targets else elsewhere)


def _meant(payouts: Sequence[Payout], *, receipt: Receipt) -> list[Payout]:
    """The one pay-out of an id that an entry can mean; several where nothing says which."""
    if len(payouts) < 2:  # noqa: PLR2004 - nothing to choose
        return [*payouts]
    equal = [one for one in payouts if receipt.worth(one.currency) == one.paid]
    if len(equal) == 1:
        return equal
    same = [one for one in payouts if one.currency == receipt.currency]
    return same if len(same) == 1 and not equal else [*payouts]
