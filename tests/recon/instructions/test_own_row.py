import pytest

from recon.instructions.planning import CONTRADICTS, OrderRow
from recon.model.words import InstructionKind, OrderStatus

CAPTURE, REFUND, CANCEL, REVIEW = (
    *(InstructionKind.CAPTURE, InstructionKind.REFUND),
    *(InstructionKind.CANCEL, InstructionKind.REVIEW),
)
MAY = {
    "pending": {CAPTURE, CANCEL, REVIEW},
    "authorised": {CAPTURE, CANCEL, REVIEW},
    "paid": {CAPTURE, REFUND, REVIEW},
    "partially_refunded": {REFUND},
    "refunded": {REFUND, CANCEL},
    "cancelled": {CANCEL},
    "failed": {CANCEL},
}


@pytest.mark.parametrize("status", OrderStatus)
@pytest.mark.parametrize("kind", [CAPTURE, REFUND, CANCEL, REVIEW])
def test_a_status_bears_out_some_actions(status: OrderStatus, kind: InstructionKind) -> None:
    """Each kind by each status; what contradicts is said with both facts."""
    row = OrderRow(status, "EUR", 1_000, refund_amount=1_000)
    said = row.against(kind, amount=1_000)

    if kind in MAY[status]:
        assert said == ""
    else:
        assert said == f"{CONTRADICTS}: {kind} of 10.00 EUR, but the row's status is {status}"


@pytest.mark.parametrize(
    ("kind", "row", "amount", "before", "facts"),
    [
        (CAPTURE, OrderRow(OrderStatus.PAID, "JPY", 900, 500), 500, 0, ""),
        (
            *(CAPTURE, OrderRow(OrderStatus.PAID, "JPY", 900, 500), 501, 0),
            "capture of 501 JPY, but the row's expected_captured_amount is 500 JPY",
        ),
        (
            *(CAPTURE, OrderRow(OrderStatus.PAID, "EUR", 900, 500), 300, 300),
            (
                "capture of 3.00 EUR, but the row's expected_captured_amount is 5.00 EUR, "
                "of which 3.00 EUR is instructed already"
            ),
        ),
        (
            *(CAPTURE, OrderRow(OrderStatus.PAID, "EUR", 900, 0), 0, 0),
            "capture of 0.00 EUR, but the row's expected_captured_amount is 0.00 EUR",
        ),
        (
            *(CAPTURE, OrderRow(OrderStatus.PAID, "EUR", 900, 1_000), 1_000, 0),
            "capture of 10.00 EUR, but the row's amount is 9.00 EUR",
        ),
        (
            *(REFUND, OrderRow(OrderStatus.REFUNDED, "KWD", 9_000, None, 2_500), 2_501, 0),
            "refund of 2.501 KWD, but the row's refund_amount is 2.500 KWD",
        ),
        (REFUND, OrderRow(OrderStatus.PAID, "EUR", 900, None, 0), 900, 0, ""),
        (
            *(REFUND, OrderRow(OrderStatus.PAID, "EUR", 900, 500), 501, 0),
            "refund of 5.01 EUR, but the row's expected_captured_amount is 5.00 EUR",
        ),
        (
            *(REFUND, OrderRow(OrderStatus.REFUNDED, "EUR", 900), 500, 500),
            (
                "refund of 5.00 EUR, but the row's amount is 9.00 EUR, of which 5.00 EUR is "
                "instructed already"
            ),
        ),
        (CANCEL, OrderRow(OrderStatus.CANCELLED, "EUR", 900, 500), 900, 0, ""),
    ],
)
def test_a_row_bears_out_no_more_than_its_own_figure(
    kind: InstructionKind, row: OrderRow, amount: int, before: int, facts: str
) -> None:
    """By currency: the figure of the kind, less earlier ones where it is their sum."""
    assert row.against(kind, amount=amount, before=before).removeprefix(f"{CONTRADICTS}: ") == facts


@pytest.mark.parametrize(
    ("kind", "row", "before", "amount"),
    [
        (CAPTURE, OrderRow(OrderStatus.PAID, "EUR", 900, 500), 0, 500),
        (CAPTURE, OrderRow(OrderStatus.PAID, "EUR", 900), 0, 900),
        (REFUND, OrderRow(OrderStatus.PARTIALLY_REFUNDED, "EUR", 900, None, 300), 0, 300),
        (REFUND, OrderRow(OrderStatus.PARTIALLY_REFUNDED, "EUR", 900, None, 300), 100, 200),
        (REFUND, OrderRow(OrderStatus.REFUNDED, "EUR", 900, 800), 100, 700),
        (REFUND, OrderRow(OrderStatus.PAID, "EUR", 900, None, 0), 100, 900),
        (CANCEL, OrderRow(OrderStatus.CANCELLED, "EUR", 900, 500, 300), 0, 900),
    ],
)
def test_a_blank_amount_takes_the_rows_own_figure(
    kind: InstructionKind, row: OrderRow, before: int, amount: int
) -> None:
    """Else the whole order; of refunds what is left of it."""
    assert row.asked(kind, before=before) == amount
