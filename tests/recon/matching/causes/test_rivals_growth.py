"""What many bookings without an order cost whose reference several payments share."""

import sys

FEW, MANY = 10, 40
STEPS_EACH_MAX = 1_500
"""Calls of Python for each more of them."""


def ambiguous(case, *, bookings):
    """So many bookings; each bears a reference of its own, which two payments have as well."""
    for number in range(bookings):
        for order_no in (f"A{number}", f"B{number}"):
            case.order(order_no=order_no)
            named = {"order_no": order_no, "transaction_id": f"T-{order_no}"}
            case.payment(reference_no=f"R{number}", **named)
        case.entry(order_no="", reference_no=f"R{number}")
    return case


def steps(case):
    """How many calls of Python a comparison makes."""
    counted = 0

    def count(_frame, event, _):
        nonlocal counted
        counted += event == "call"

    sys.setprofile(count)
    try:
        case.run()
    finally:
        sys.setprofile(None)
    return counted


def test_one_more_ambiguous_booking_costs_little(new_case):
    """Who else fits is found for all of them together."""
    ambiguous(new_case(), bookings=1).run()
    few, many = (ambiguous(new_case(), bookings=size) for size in (FEW, MANY))

    each = (steps(many) - steps(few)) / (MANY - FEW)

    assert each <= STEPS_EACH_MAX, each
    reasons = many.run().breaks["reason"]
    assert "This fits A7 and B7 by its reference R7 as well; nothing was chosen." in {*reasons}
