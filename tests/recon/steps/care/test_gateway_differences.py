import tomllib
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from recon.config.settings import load_settings
from recon.gateway_client import GatewayInterface
from recon.steps.care.doctor import Check
from recon.steps.care.gateway_doctor import KnownOrders, _amounts, gateway_checks

ACCOUNT = ("100042", "100042001")


def found(merchant: Any, *orders: str, refunded: tuple[str, ...] = ()) -> dict[str, Check]:
    """The doctor's lines by name, of some orders."""
    settings = load_settings(merchant.variables)
    checks = gateway_checks(
        settings,
        account=ACCOUNT,
        clock=lambda: datetime.now(UTC),
        named=KnownOrders(orders, refunded),
    )
    return {check.name: check for check in checks}


def order_of(merchant: Any, currency: str) -> str:
    """An order of the sandbox's in a currency."""
    wanted = (one for one in merchant.effects(origin="seed") if one["currency"] == currency)
    return str(next(one["order_no"] for one in wanted if one["account_id"] == ACCOUNT[1]))


def refunded_order(merchant: Any) -> str:
    """An order of which the sandbox gave money back."""
    effects = merchant.effects(origin="seed")
    mine = (one for one in effects if one["account_id"] == ACCOUNT[1])
    return str(next(one["order_no"] for one in mine if one["operation"] == "refund"))


def test_decimals_that_differ_from_ours_are_written_out(merchant: Any) -> None:
    """Amounts that we would write otherwise: the line to paste makes the next look right."""
    yen, dinar = order_of(merchant, "JPY"), order_of(merchant, "KWD")
    profiles = merchant.folder / "config" / "profiles.toml"
    profiles.write_text("[user.amounts]\nown_decimals_if_more = false\nof_currency = { JPY = 0 }\n")

    wrong = found(merchant, yen, dinar)

    assert not wrong["amounts of JPY"].ok
    assert not wrong["amounts of KWD"].ok
    assert "ours has 0; put into profiles.toml:" in wrong["amounts of JPY"].sentence
    pasted = [
        "\n".join(wrong[f"amounts of {currency}"].sentence.splitlines()[1:])
        for currency in ("JPY", "KWD")
    ]
    assert pasted[1] == "[user.amounts.of_currency]\nKWD = 3"
    profiles.write_text(f"{pasted[0]}\n{pasted[1].splitlines()[1]}\n")
    assert all(check.ok for check in found(merchant, yen, dinar).values())


def test_without_a_named_order_it_says_what_was_not_looked_at(merchant: Any) -> None:
    """Silence about amounts would read as if they had been compared."""
    amounts = found(merchant)["amounts"]

    assert amounts.ok
    assert "not looked at; name orders with --order" in amounts.sentence


def test_whether_refunds_are_shown_is_seen_of_a_refunded_order(merchant: Any) -> None:
    """The sandbox shows them; an order without one stands for a gateway that does not."""
    back, kept = refunded_order(merchant), merchant.payments("captured")[0].order_no

    shown = found(merchant, refunded=(back,))["refunds"]
    hidden = found(merchant, refunded=(back, kept))["refunds"]

    assert shown.ok
    assert not hidden.ok
    assert f"shown otherwise: {kept} as 3000" in hidden.sentence
    assert back not in hidden.sentence


def test_a_refund_that_is_shown_refutes_that_none_ever_is(merchant: Any) -> None:
    """What rules.toml declares is held against an order that the gateway does show as refunded."""
    rules = merchant.folder / "config" / "rules.toml"
    rules.write_text(rules.read_text().replace("[gateway]", "[gateway]\nshows_refunds = false"))
    back = refunded_order(merchant)

    refuted = found(merchant, refunded=(back,))["refunds"]

    assert not refuted.ok
    assert f"yet the gateway shows {back} as 4" in refuted.sentence


def test_how_it_refuses_and_what_it_ignores_is_seen(merchant: Any) -> None:
    """A wrong signature is refused with a listed code; a field of nobody's is ignored."""
    checks = found(merchant)

    assert "is refused with code I0013" in checks["refusals"].sentence
    assert checks["further fields"].sentence.endswith("is ignored")


@pytest.mark.parametrize(
    ("currency", "texts", "advice"),
    [
        ("EUR", ["12.5", "30.00"], "as_written"),
        ("EUR", ["12", "30"], "as_written"),
        ("KWD", ["12.5", "1.250"], "as_written"),
        ("KWD", ["12.50", "1.25"], "own_decimals_if_more = false"),
        ("JPY", ["1200", "30"], "JPY = 0"),
        ("EUR", ["12.505"], "nothing yet"),
    ],
)
def test_the_advice_on_decimals_breaks_no_amount_that_needs_more(
    currency: str, texts: list[str], advice: str
) -> None:
    """Zeros left out of replies are read as written; captures of 12.51 EUR go out all the same."""
    amounts = GatewayInterface.bundled().profile.amounts
    rows = [{"currency": currency, "amount": text} for text in texts]
    (check,) = _amounts(rows, amounts=amounts)

    assert not check.ok
    assert advice in check.sentence
    if advice == "as_written":
        pasted = tomllib.loads("\n".join(check.sentence.splitlines()[1:]))
        interface = GatewayInterface.bundled(user={"profiles": pasted["user"]})
        (again,) = _amounts(rows, amounts=interface.profile.amounts)
        assert again.ok
        assert not interface.profile.amounts.problem(Decimal("12.510"), currency="KWD")
        assert not interface.profile.amounts.problem(Decimal("12.51"), currency="EUR")
