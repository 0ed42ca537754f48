from recon.model.gateway_holds import FeesTaken, GatewayHolds, HeldPart, Holding

ACCOUNT = ("M", "A")


def test_each_currency_has_a_short_line_of_its_own() -> None:
    """Three currencies are three lines for what is held and three for fees, no long one."""
    holds = GatewayHolds(
        tuple(
            Holding(*ACCOUNT, money, payable=HeldPart(100, "2026-11-16"))
            for money in ("EUR", "GBP", "USD")
        ),
        tuple(FeesTaken(*ACCOUNT, money, 300, 200) for money in ("EUR", "GBP", "USD")),
    )
    assert holds.sentences() == (
        "The gateway holds: payable 1.00 EUR (oldest 2026-11-16)",
        "The gateway holds: payable 1.00 GBP (oldest 2026-11-16)",
        "The gateway holds: payable 1.00 USD (oldest 2026-11-16)",
        "Fees: charged 3.00 EUR, booked 2.00 EUR, difference 1.00 EUR",
        "Fees: charged 3.00 GBP, booked 2.00 GBP, difference 1.00 GBP",
        "Fees: charged 3.00 USD, booked 2.00 USD, difference 1.00 USD",
    )


def test_nothing_is_said_in_a_line_too() -> None:
    """Where nothing is held and nothing was taken, both lines say so."""
    assert GatewayHolds().sentences() == ("The gateway holds: nothing", "Fees: none")
