from recon.model.terms import Verdict

OTHER = "100042002"


def _second_account(merchant):
    config = merchant.folder / "config" / "merchants.toml"
    config.write_text(config.read_text() + config.read_text().replace("100042001", OTHER))


def _payment_of_other(merchant):
    """A captured euro payment of the other account, from the sandbox's truth."""
    rows = [row for row in merchant.effects(origin="seed") if row["account_id"] == OTHER]
    refunded = {row["transaction_id"] for row in rows if row["operation"] not in _PAID}
    return next(
        row
        for row in rows
        if row["operation"] == "capture"
        and row["currency"] != "JPY"
        and row["transaction_id"] not in refunded
    )


_PAID = {"authorise", "capture"}


def _filed_here(paid):
    """The payment's order as this account's file has it."""
    return {
        "merchant_id": "100042",
        "account_id": "100042001",
        "order_no": paid["order_no"],
        "currency": paid["currency"],
        "amount": paid["amount"],
        "status": "paid",
        "ordered_at": paid["committed_at"],
    }


def _breaks(merchant):
    result = merchant.result()
    columns = ("account_id", "order_no", "code")
    return list(result.breaks[list(columns)].itertuples(index=False, name=None))


def test_an_order_paid_in_another_account_is_one_break(merchant):
    """An order that was paid in the merchant's other account is WRONG_ACCOUNT, once."""
    paid = _payment_of_other(merchant)
    _second_account(merchant)
    merchant.drop("orders.csv", _filed_here(paid))
    merchant.night()

    assert _breaks(merchant) == [("100042001", paid["order_no"], "WRONG_ACCOUNT")]


def test_an_order_filed_under_another_account_is_proven_to_be_one_of_its_own(merchant):
    """The order that joins from the other account is counted as such, before and after money."""
    here = next(row for row in merchant.payments("captured") if row.currency != "JPY")
    _second_account(merchant)
    order = merchant.order(here)
    merchant.drop("orders.csv", order | {"account_id": OTHER})
    book = f"L-1,100042,100042001,{here.order_no},capture,{here.currency},{here.amount}"
    with (merchant.folder / "ledger.csv").open("a") as ledger:
        ledger.write(f"{book},{here.ordered_at}\n")
    verdict = merchant.night()

    assert _breaks(merchant) == [(OTHER, here.order_no, "WRONG_ACCOUNT")]
    assert verdict is not Verdict.NOT_PROVEN


def test_the_same_number_in_both_accounts_is_two_orders(merchant):
    """An order number that the other account uses for its own order and payment stays its own."""
    paid = _payment_of_other(merchant)
    _second_account(merchant)
    here = _filed_here(paid)
    merchant.drop("orders.csv", here, here | {"account_id": OTHER})
    merchant.night()

    assert _breaks(merchant) == [("100042001", paid["order_no"], "MISSING_AT_GATEWAY")]
