import json
from decimal import Decimal
from typing import Any, ClassVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from recon.sandbox.batch import act_by_hand
from recon.sandbox.book import Book
from recon.sandbox.call import Sandbox
from recon.sandbox.exchange import exchange
from recon.sandbox.faults import KINDS, install, rules_in
from recon.sandbox.options import SandboxOptions, VirtualClock
from recon.sandbox.server import fill
from recon.sandbox.terms import load_terms
from recon.sandbox.wire import sign
from tests.recon.sandbox.conftest import CARD_PAYMENT
from tests.recon.sandbox.test_operations import PAYOUT

OPTIONS = SandboxOptions(orders=12)
TERMS = load_terms()
AMOUNTS = ("own", "0.01", "1.00", "100.00", "0.001", "999999.00", "x")
OFTEN_OWN = st.one_of(st.just("own"), st.sampled_from(AMOUNTS))
CARDS = ("4111111111111111", *TERMS.risk.cards)
PLAN = {"contract_name": "Gold plan", "interval": "day", "interval_count": "10"}
MOVING = frozenset(
    {
        *("authorise", "capture", "cancel", "refund", "review"),
        *("cancelsubscription", "payout"),
    }
)
"""Every operation that takes effect; the queries and the hosted page do not."""
SIDES = [(kind, side) for kind, terms in KINDS.items() for side in sorted(terms.sides)]


class AnyOrder(RuleBasedStateMachine):
    """Operations in any order, with and without faults, on payments of any state."""

    operations_seen: ClassVar[set[str]] = set()
    """What took effect in any run: a machine that changes nothing proves nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.book = Book(None)
        self.sandbox = Sandbox(OPTIONS, TERMS, self.book, VirtualClock())

    @initialize()
    def populate(self) -> None:
        """Begin with a small population."""
        with self.book.transaction():
            fill(self.book, options=OPTIONS, terms=TERMS)
        self.payments = list(self.book.every_payment())

    def send(self, operation: str, rows: list[dict[str, str]]) -> None:
        """Send a signed batch."""
        body: dict[str, Any] = {"merchant_id": OPTIONS.merchant, "account_id": OPTIONS.account}
        body["encryption_data"] = sign(operation, body, sign_key=OPTIONS.sign_key, rows=rows)
        body[f"{operation}_orders"] = rows
        sent = json.dumps(body).encode()
        exchange(self.sandbox, operation=operation, body=sent, client_ip="127.0.0.1")

    @rule(
        operation=st.sampled_from(("refund", "capture", "cancel", "review")),
        picks=st.lists(st.integers(0, 30), min_size=1, max_size=4),
        amount=OFTEN_OWN,
        refund=OFTEN_OWN,
    )
    def batch(self, operation: str, picks: list[int], amount: str, refund: str) -> None:
        """Any rows with any amounts."""
        rows = []
        for pick in picks:
            payment = self.payments[pick % len(self.payments)]
            row = {"transaction_id": payment.transaction_id, "order_no": payment.order_no}
            row |= {"currency": payment.currency, "review_flag": "1", "refund_reason": "r"}
            row["amount"] = payment.amount if amount == "own" else amount
            row["refund_amount"] = payment.amount if refund == "own" else refund
            rows.append(row)
        self.send(operation, rows)

    def call(self, operation: str, *, template: str = "", **fields: Any) -> None:
        """Send a signed call about one thing."""
        body: dict[str, Any] = {"merchant_id": OPTIONS.merchant, "account_id": OPTIONS.account}
        body |= fields
        body["encryption_data"] = sign(template or operation, body, sign_key=OPTIONS.sign_key)
        sent = json.dumps(body).encode()
        exchange(self.sandbox, operation=operation, body=sent, client_ip="127.0.0.1")

    @rule(card=st.sampled_from(CARDS), amount=st.sampled_from(AMOUNTS[1:]), plan=st.booleans())
    def pay(self, card: str, amount: str, plan: bool) -> None:  # noqa: FBT001 - a drawn value
        """A shopper pays by card, with or without a subscription; some are kept for review."""
        fields: dict[str, Any] = CARD_PAYMENT | {"card": card, "amount": amount}
        fields["order_no"] = f"web-{len(self.payments)}"
        self.call(
            "authorise",
            template="authorise_card",
            **fields,
            **({"subscription": PLAN} if plan else {}),
        )
        self.payments = list(self.book.every_payment())

    @rule()
    def end_subscription(self) -> None:
        """The newest subscription, if any, is ended; a second time is refused."""
        found = self.book.select("SELECT max(recurring_id) FROM subscription")
        named = {"recurring_id": found[0][0] or "none", "contract_name": "Gold plan"}
        self.call("cancelsubscription", **named)

    @rule(number=st.integers(1, 3), amount=st.sampled_from(AMOUNTS[1:]))
    def pay_out(self, number: int, amount: str) -> None:
        """Money leaves to a beneficiary; a request id that was used before is the same payout."""
        changed = {"request_id": f"{PAYOUT['request_id'][:-1]}{number}", "payment_amount": amount}
        self.call("payout", **(PAYOUT | changed))

    @rule(
        action=st.sampled_from(("cancel", "capture", "refund")),
        pick=st.integers(0, 30),
        amount=st.sampled_from((None, "0.01", "1.00")),
    )
    def by_hand(self, action: str, pick: int, amount: str | None) -> None:
        """A person does it in the gateway's portal."""
        payment = self.payments[pick % len(self.payments)]
        with self.book.transaction():
            act_by_hand(self.sandbox, action=action, key=payment.transaction_id, amount=amount)

    @rule(
        side=st.sampled_from(SIDES), action=st.sampled_from((None, "capture", "cancel", "refund"))
    )
    def plan(self, side: tuple[str, str], action: str | None) -> None:
        """The next call goes wrong in one of all the ways there are."""
        table: dict[str, Any] = {"kind": side[0], "when": side[1], "times": 1}
        if side[0] == "portal" and action:
            table["action"] = action
        with self.book.transaction():
            install(self.book, rules_in(table, source="test"), append=False)

    @rule(days=st.integers(0, 4))
    def wait(self, days: int) -> None:
        """The clock moves."""
        self.sandbox.clock.moved += days * 86_400

    @invariant()
    def money_is_bounded(self) -> None:
        """Nothing is captured or cancelled twice, nor more moved than there is."""
        counted = self.book.invariants()
        statement = (
            "SELECT sum(CASE WHEN operation LIKE '%_reversed' THEN -1 ELSE 1 END) AS stands"
            " FROM effect WHERE operation LIKE 'capture%' OR operation LIKE 'cancel%'"
            " GROUP BY transaction_id HAVING stands > 1"
        )
        assert self.book.select(statement) == []
        assert counted["over_captured"] == counted["over_refunded"] == 0
        assert counted["effects_without_client_record"] == 0

    @invariant()
    def states_follow_from_the_truth(self) -> None:
        """What a payment says of its captured and refunded sums is the sum of its effects."""
        for payment in self.book.every_payment():
            for name in ("capture", "refund"):
                statement = (
                    "SELECT sum(CASE operation WHEN ? THEN amount WHEN ? THEN -amount END)"
                    " FROM effect WHERE transaction_id = ?"
                )
                named = (name, f"{name}_reversed", payment.transaction_id)
                ((total,),) = self.book.select(statement, named)
                kept = payment.captured if name == "capture" else payment.refunded
                assert Decimal(total or 0) == kept

    def teardown(self) -> None:
        """Let the database go."""
        rows = self.book.select("SELECT operation FROM effect WHERE origin = 'api'")
        self.operations_seen.update(row[0] for row in rows)
        self.book.close()


def test_any_order_of_operations_keeps_the_invariants() -> None:
    """Whatever is sent, in whatever order and under faults: money stays within its bounds."""
    run_state_machine_as_test(AnyOrder, settings=settings(max_examples=80, stateful_step_count=25))
    assert AnyOrder.operations_seen == MOVING
