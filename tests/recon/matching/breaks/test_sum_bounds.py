"""Sums that would leave int64."""

from typing import Any

import pytest

from recon.model.errors import SourceUnreadableError


def test_a_night_whose_sums_would_wrap_is_refused(case: Any) -> None:
    """Payments that come to 2^64 more than their order would pass for the right sum."""
    part, rest = divmod(2**64, 200)
    case.order().payment()
    for number in range(200):
        amount = part + (rest if number == 0 else 0)
        case.payment(transaction_id=f"X{number}", amount=amount)

    with pytest.raises(SourceUnreadableError, match=r"the gateway .* in amount"):
        case.run()
