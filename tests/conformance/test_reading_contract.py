"""Contract 8, the order query, as any gateway must keep it; nothing here moves money."""

import pytest

from recon.gateway_client import QueryRefusedError

NOBODYS = "CONFORMANCE-NO-SUCH-ORDER"
"""An order number that no gateway knows."""


def known(target):
    """Orders that the gateway must know, or a skip that says how to name some."""
    if not target.known_orders:
        pytest.skip("no order is named; set CONFORMANCE_ORDERS=<order_no>,<order_no>")
    return target.known_orders


def test_an_unknown_order_is_answered_as_not_found(target):
    answers = target.ask(order_nos=[NOBODYS])
    assert (answers.not_found, answers.failed, answers.found) == ((NOBODYS,), (), ())


def test_every_key_is_answered_exactly_once(target):
    keys = [*known(target), NOBODYS]
    answers = target.ask(order_nos=keys)
    answered = [record.key for record in answers.found] + list(answers.not_found)
    assert sorted(set(answered)) == sorted(keys)
    assert answers.failed == ()
    assert answers.calls == 1


def test_an_order_and_its_transaction_tell_the_same(target):
    (order,) = known(target)[:1]
    by_order = target.ask(order_nos=[order]).found
    trades = [record.transaction_id for record in by_order]
    by_trade = target.ask(trades=trades).found
    facts = ("order_no", "transaction_id", "currency", "amount", "payment_status")
    assert sorted([getattr(record, name) for name in facts] for record in by_order) == sorted(
        [getattr(record, name) for name in facts] for record in by_trade
    )


def test_records_have_the_form_of_the_document(target):
    for record in target.ask(order_nos=known(target)).found:
        assert len(record.currency) == 3
        assert record.amount > 0
        assert record.transaction_at is not None
        assert record.payment_status
        assert record.query_result


def test_replies_raise_no_finding(target):
    answers = target.ask(order_nos=[*known(target), NOBODYS])
    assert [str(finding) for finding in answers.findings] == []


def test_a_full_group_is_one_call(target):
    rows_max = target.account.interface.profile.query.retrievalTrans.rows_max
    characters_max = target.account.interface.profile.query_characters_max
    keys = [f"C{number:06d}" for number in range(rows_max)]
    answers = target.ask(order_nos=keys)
    assert set(answers.not_found) == set(keys)
    assert answers.calls == (1 if not characters_max or 8 * rows_max <= characters_max else 2)


def test_a_wrong_key_is_refused_as_such(target):
    with pytest.raises(QueryRefusedError, match="check the sign key"):
        target.signing_with("not the key").ask(order_nos=[NOBODYS])


def test_a_group_that_is_too_large_is_halved(target, sandbox):
    assert sandbox
    profile = target.account.interface.profile
    query = profile.query.model_copy(
        update={"retrievalTrans": profile.query.retrievalTrans.model_copy(update={"rows_max": 150})}
    )
    changed = profile.model_copy(update={"query": query, "query_characters_max": 0})
    interface = target.account.interface.model_copy(update={"profile": changed})
    generous = target.but(interface=interface)
    keys = [f"C{n}" for n in range(150)]
    answers = generous.ask(order_nos=keys)
    assert set(answers.not_found) == set(keys)
    assert answers.calls == 3


def test_another_merchant_is_refused_as_such(target, sandbox):
    assert sandbox
    with pytest.raises(QueryRefusedError, match="check both ids"):
        target.but(merchant_id="100099").ask(order_nos=[NOBODYS])
