"""One payment under two orders is never counted twice in silence."""

import pytest

from recon.proof.engine import in_buckets, reconcile
from recon.proof.proven import proven
from tests.planted import shared_payments
from tests.proving import failed


def test_a_payment_under_two_orders_is_ambiguous_for_both() -> None:
    """Both orders are breaks under their own names, and no other order is."""
    files = shared_payments(pairs=3, agreeing=5)
    ends = [
        in_buckets(
            files.sources, buckets=buckets, rules=files.rules, as_of=files.as_of, previous=None
        )
        for buckets in (1, 64)
    ]

    for end in ends:
        assert sorted(end.breaks["order_no"]) == sorted(files.key["name"])
        assert {*end.breaks["code"]} == {*files.key["code"]}
        assert failed(proven(end, sources=files.sources, rules=files.rules)) == []
    assert ends[0].digest == ends[1].digest


@pytest.mark.parametrize(("state", "ambiguous"), [("authorised", True), ("failed", False)])
def test_a_dead_attempt_under_two_orders_moves_nothing(state: str, *, ambiguous: bool) -> None:
    """Only what may still move money needs a person to say whose it is."""
    files = shared_payments(pairs=1, agreeing=0, state=state)

    codes = reconcile(files.sources, rules=files.rules, as_of=files.as_of).breaks["code"]

    assert codes.eq("AMBIGUOUS_MATCH").all() == ambiguous
