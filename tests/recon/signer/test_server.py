"""What a worker that somebody took over gets from a signer: a real process on a real socket."""

import hashlib
import json
import os
import stat
import subprocess
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest

from recon import cli
from recon.gateway_client import UnsignedError
from recon.instructions.account import REQUEST_BYTES_MAX, SIGN_PATH
from recon.model.errors import ConfigurationError, UsageError
from recon.signer.configured import signer_settings
from recon.signer.server import RateLimiter, RequestLog, listening, logged
from recon.signer.signing import signing_request_of
from tests.recon.signer.conftest import (
    ACCOUNT,
    BY_RULE,
    KEY,
    MERCHANT,
    RECON,
    Desk,
    capture_terms,
    grounds,
    message,
    refund_terms,
    review_terms,
    signing,
    wire,
    write_rules,
)

REFUNDS_BY_RULE = """
[accounts."100042/100042001".by_rule.refund.EUR]
item = 30
day = 35
count = 9
"""


def by_hand(*texts):
    """The signature as the gateway's document has it: concatenated, the key last."""
    return hashlib.sha256("".join([MERCHANT, ACCOUNT, *texts, KEY]).encode()).hexdigest()


def test_queries_are_signed_and_replies_checked(signer):
    assert signer.socket.sign(message("retrievalTrans")) == by_hand()
    row = {"transaction_id": "T7"}
    assert signer.socket.matches(message("refund", row), given=by_hand("T7"))
    assert not signer.socket.matches(message("refund", row), given=by_hand("T8"))


def test_what_two_people_endorsed_is_signed(signer):
    items = {"i-10": refund_terms(10), "i-11": refund_terms(11)}
    endorsements = signer.desk.agreed(items)
    for wanted, terms in items.items():
        asking = signer.socket.on(grounds({wanted: terms}, endorsements))
        signature = asking.sign(message("refund", wire(terms)))
        assert signature == by_hand(str(terms["transaction_id"]))
        assert asking.sign(message("refund", wire(terms))) == signature
    assert signer.log[-1]["rows"][0]["instruction_id"] == "i-11"
    assert KEY not in (signer.folder / "log").read_text()


TERMS, OTHER = refund_terms(20), refund_terms(21)
ITEMS = {"i-20": TERMS}
RAISED, AWAY = TERMS | {"amount": 2000}, TERMS | {"account_id": "100042002"}
ALONE = [("ben", "Ben Hill", "approver")]
NOBODY = "endorsed it for nobody"


def refund(*rows, account=ACCOUNT):
    return message("refund", *(rows or (wire(TERMS),)), account=account)


ATTACKS: dict[str, tuple[Any, Callable[[Desk], dict[str, Any]], str]] = {
    "nobody endorsed it": (
        refund(),
        lambda _: grounds(ITEMS),
        f"{NOBODY}, and no refund EUR is signed without people",
    ),
    "one person alone": (
        refund(),
        lambda desk: grounds(ITEMS, desk.agreed(ITEMS, people=ALONE)),
        "endorsed it for Ben Hill alone",
    ),
    "one person twice": (
        refund(),
        lambda desk: grounds(ITEMS, desk.agreed(ITEMS)[1:] * 2),
        "endorsed it for Ben Hill alone",
    ),
    "no code proved it": (
        refund(),
        lambda desk: grounds(ITEMS, desk.agreed(ITEMS, proven=False)),
        NOBODY,
    ),
    "it ran out": (refund(), lambda desk: grounds(ITEMS, desk.agreed(ITEMS, hours=-1)), NOBODY),
    "another desk's key": (refund(), lambda _: grounds(ITEMS, Desk().agreed(ITEMS)), NOBODY),
    "altered amount and terms": (
        refund(wire(RAISED)),
        lambda desk: grounds({"i-20": RAISED}, desk.agreed(ITEMS)),
        NOBODY,
    ),
    "another account's instruction": (
        refund(wire(AWAY)),
        lambda desk: grounds({"i-20": AWAY}, desk.agreed({"i-20": AWAY})),
        "its instruction is another account's",
    ),
    "one row more": (
        refund(wire(TERMS), wire(OTHER)),
        lambda desk: grounds(ITEMS | {"i-21": OTHER}, desk.agreed(ITEMS)),
        f"row 2: the desk {NOBODY}",
    ),
    "any text at all": (
        message("payment_reply"),
        lambda _: {},
        "payment_reply is what the gateway signs",
    ),
    **{
        name: (asked, lambda desk: grounds(ITEMS, desk.agreed(ITEMS)), why)
        for name, asked, why in (
            (
                "an altered amount",
                refund(wire(TERMS, refund_amount="20.00")),
                "its refund_amount is not the instruction's",
            ),
            (
                "another payment",
                refund(wire(TERMS, transaction_id="T99")),
                "its transaction_id is not the instruction's",
            ),
            (
                "another kind",
                message("cancel", wire(TERMS)),
                "its instruction is a refund, not a cancel",
            ),
            (
                "one row more, nothing said of it",
                refund(wire(TERMS), wire(OTHER)),
                "nothing is said of which instruction",
            ),
            (
                "a space that makes another id",
                refund(wire(TERMS, transaction_id="T 20")),
                "its transaction_id does not have the form",
            ),
            (
                "no such account",
                refund(account="100042003"),
                "no account 100042/100042003 is signed for here",
            ),
        )
    },
}
"""What a stolen worker asks for, what it says for it, and why that is refused."""


@pytest.mark.parametrize("name", ATTACKS)
def test_what_nobody_agreed_to_is_refused_and_logged(signer, name):
    asked, said, why = ATTACKS[name]
    with pytest.raises(UnsignedError) as refused:
        signer.socket.on(said(signer.desk)).sign(asked)
    assert why in str(refused.value)
    assert refused.value.final
    line = signer.log[-1]
    assert (line["answer"], line["operation"]) == ("refused", asked.template)
    assert line["why"] in str(refused.value)
    assert KEY not in str(line)


def test_a_text_of_the_callers_own_is_not_signed_as_a_query(signer):
    """Nothing stands between two fields: an e-mail address could be the id of a refund."""
    asked = message("checkout")
    with pytest.raises(UnsignedError, match="which could be made those of a refund"):
        signer.socket.sign(asked)
    with pytest.raises(UnsignedError, match="signs_free_fields"):
        signer.socket.sign(message("authorise_card"))


def test_the_own_limits_count_over_a_restart(short_folder):
    desk = Desk()
    for number in (1, 2):
        with signing(short_folder, desk=desk) as running:
            terms = capture_terms(number)
            asking = running.socket.on(grounds({f"c-{number}": terms}))
            assert asking.sign(message("capture", wire(terms))) == by_hand(f"T{number}")
    with signing(short_folder, desk=desk) as running:
        both = {f"c-{number}": capture_terms(number) for number in (3, 4)}
        asking = running.socket.on(grounds(both))
        with pytest.raises(UnsignedError, match=r"row 2.*the 3 of 24 hours") as refused:
            asking.sign(message("capture", *(wire(terms) for terms in both.values())))
        assert set(refused.value.refused) == {1}
        large = capture_terms(5, amount=50001, payment_amount=50001)
        with pytest.raises(UnsignedError, match=r"own limit of one is 500 EUR, not 500\.01 EUR"):
            running.socket.on(grounds({"c-5": large})).sign(message("capture", wire(large)))
        third = running.socket.on(grounds({"c-3": both["c-3"]}))
        assert third.sign(message("capture", wire(both["c-3"])))
        again = running.socket.on(grounds({"c-1": capture_terms(1)}))
        assert again.sign(message("capture", wire(capture_terms(1)))) == by_hand("T1")


def test_an_endorsed_capture_needs_no_limit(signer):
    terms = capture_terms(30, amount=90_000_00, payment_amount=90_000_00)
    endorsements = signer.desk.agreed({"c-30": terms})
    asking = signer.socket.on(grounds({"c-30": terms}, endorsements))
    assert asking.sign(message("capture", wire(terms))) == by_hand("T30")


def test_the_payment_may_be_found_out_after_people_agreed(signer):
    agreed = refund_terms(40)
    later = dict(agreed)
    del agreed["transaction_id"], agreed["payment_amount"]
    endorsements = signer.desk.agreed({"i-40": agreed})
    said = grounds({"i-40": later}, endorsements)
    with pytest.raises(UnsignedError, match="endorsed it for nobody"):
        signer.socket.on(said).sign(message("refund", wire(later)))
    said["rows"][0]["seen"] = agreed
    assert signer.socket.on(said).sign(message("refund", wire(later))) == by_hand("T40")
    said["rows"][0]["seen"] = agreed | {"transaction_id": "T41"}
    other = wire(later, transaction_id="T42")
    said["rows"][0]["terms"] = later | {"transaction_id": "T42"}
    with pytest.raises(UnsignedError, match="not what people saw"):
        signer.socket.on(said).sign(message("refund", other))


def test_a_review_uses_up_what_a_rule_lets_refund(short_folder):
    desk, rules, later = Desk(), {"more": REFUNDS_BY_RULE}, review_terms(5)
    refund, review, cent = refund_terms(1), review_terms(2), refund_terms(3, amount=1)
    with signing(short_folder, desk=desk, **rules) as running:
        socket = running.socket
        assert socket.on(grounds({"i-1": refund})).sign(message("refund", wire(refund)))
        assert socket.on(grounds({"v-2": review})).sign(message("review", wire(review)))
        unsaid = wire(review, transaction_id="T4") | {"amount": ""}
        said = grounds({"v-4": review_terms(2, transaction_id="T4", payment_amount=0)})
        with pytest.raises(UnsignedError, match="its amount is none"):
            socket.on(said).sign(message("review", unsaid))
    with signing(short_folder, desk=desk, **rules) as running:
        socket = running.socket
        with pytest.raises(UnsignedError, match=r"24 hours is 35 EUR, not 35\.01 EUR"):
            socket.on(grounds({"i-3": cent})).sign(message("refund", wire(cent)))
        with pytest.raises(UnsignedError, match=r"24 hours is 35 EUR, not 60\.00 EUR"):
            socket.on(grounds({"v-5": later})).sign(message("review", wire(later)))
        assert socket.on(grounds({"v-2": review})).sign(message("review", wire(review)))


def test_without_a_limit_of_refunds_a_review_needs_people(signer):
    review = review_terms(50)
    asked = message("review", wire(review))
    with pytest.raises(UnsignedError, match="no review EUR is signed without people"):
        signer.socket.on(grounds({"v-50": review})).sign(asked)
    endorsements = signer.desk.agreed({"v-50": review})
    assert signer.socket.on(grounds({"v-50": review}, endorsements)).sign(asked) == by_hand("T50")


def test_the_end_of_a_subscription_needs_people(signer):
    terms: dict[str, str | int] = {
        "merchant_id": MERCHANT,
        "account_id": ACCOUNT,
        "kind": "cancel_subscription",
        "recurring_id": "R1",
        "contract_name": "Gold plan",
    }
    fields = {"recurring_id": "R1", "contract_name": "Gold plan"}
    asked = replace(message("cancelsubscription"), fields=fields)
    with pytest.raises(UnsignedError, match="no cancel_subscription is signed without people"):
        signer.socket.on(grounds({"s-1": terms})).sign(asked)
    endorsements = signer.desk.agreed({"s-1": terms})
    assert signer.socket.on(grounds({"s-1": terms}, endorsements)).sign(asked) == by_hand(
        "R1", "Goldplan"
    )


def answer_of(socket):
    try:
        return socket.sign(message("retrievalTrans"))
    except UnsignedError as error:
        return str(error)


def test_too_many_questions_wait(short_folder):
    with signing(short_folder, head="calls_per_second = 2") as running:
        patient = running.socket
        for _ in range(4):
            assert patient.sign(message("retrievalTrans"))
        hasty = replace(patient, retry_seconds=0)
        told = [answer_of(hasty) for _ in range(9)]
    assert any("HTTP 429" in one for one in told)
    assert any(line.get("why") == "asked too often" for line in running.log)


def test_a_request_that_is_too_large_is_not_heard(signer):
    """It is discarded while it arrives, and the next one is signed.

    64 MiB take 4 seconds and may take 10: a busy machine that was too slow for it (408) is asked
    again.
    """
    transport = httpx.HTTPTransport(uds=str(signer.folder / "socket"))
    answers = []
    with httpx.Client(transport=transport, base_url="http://signer", timeout=60) as client:
        while len(answers) < 4 and {*answers} <= {408}:
            answer = client.post(SIGN_PATH, content=b" " * (REQUEST_BYTES_MAX + 1))
            answers.append(answer.status_code)

    assert answers[-1] == 413
    assert signer.socket.sign(message("retrievalTrans"))


def test_nobody_there_is_told_and_waited_for(short_folder):
    with signing(short_folder) as running:
        socket = running.socket
        running.process.kill()
        running.process.wait(20)
        with pytest.raises(UnsignedError, match=r"signer at .* did not answer.*nothing was sent"):
            socket.sign(message("retrievalTrans"))
        assert socket.path.exists()
    with signing(short_folder) as running:  # the socket that the killed one left is no hindrance
        assert running.socket.sign(message("retrievalTrans")) == by_hand()
    assert not socket.path.exists()


def refused_start(folder):
    ran = subprocess.run(
        [RECON, "serve", "signer", "--rules", str(folder / "signer.toml")],
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 2
    return ran.stderr.decode()


def test_a_file_that_others_can_change_starts_nothing(short_folder, capsys):
    rules = write_rules(short_folder, desk=Desk())
    rules.chmod(0o666)
    assert cli.main(["serve", "signer", "--rules", str(rules)]) == 2
    assert "others can change it: chmod go-w" in capsys.readouterr().err
    rules.chmod(0o600)
    (short_folder / "key").chmod(0o644)
    assert cli.main(["serve", "signer", "--rules", str(rules)]) == 2
    assert "others can read it" in capsys.readouterr().err
    with signing(short_folder) as running:
        assert "listens for the signer at" in refused_start(short_folder)
        assert running.socket.health()["uid"] == os.geteuid()


def test_rules_that_could_not_hold_are_named(short_folder, capsys):
    for more, told in (
        ('[accounts."100042/100042001".by_rule.capture.any]\ncount = 1\nday = 5\n', "any has no"),
        ('[accounts."100042/100042001".by_rule.gift.EUR]\ncount = 1\n', "by_rule"),
        (
            '[accounts."100042/100042001".by_rule.review.any]\ncount = 1\n',
            "a review counts against by_rule.refund",
        ),
        (
            '[accounts."100042/100042001".by_rule.cancel_subscription.any]\ncount = 1\n',
            "a cancel_subscription always needs two people",
        ),
        (BY_RULE + '[accounts."100042/1000420011"]\n', "could be taken for one of"),
    ):
        rules = write_rules(short_folder, desk=Desk(), more=more)
        assert cli.main(["serve", "signer", "--rules", str(rules)]) == 2
        assert told in capsys.readouterr().err


CARD = "4929780164523877"


def test_the_log_has_ids_and_amounts_and_nothing_private(tmp_path):
    """Of a payment only that one was asked for; of a row no reason; card numbers are cut."""
    row = {"transaction_id": "T1", "refund_amount": "1.00", "refund_reason": "Ann Quill"}
    document = {"merchant_id": "1", "account_id": "2", "fields": {}, "rows": [row]}
    refund = signing_request_of({**document, "template": "refund"})
    paid = signing_request_of({**document, "template": "authorise_card", "fields": {"card": CARD}})
    odd = signing_request_of({**document, "template": "refund", "rows": [{"order_no": CARD}]})
    with closing(RequestLog(tmp_path / "log")) as log:
        for asked in (refund, paid, odd):
            log.note("refused", at=datetime(2026, 11, 22, tzinfo=UTC), why="no", **logged(asked))
    text = (tmp_path / "log").read_text()
    assert (CARD in text, "Quill" in text) == (False, False)
    first, second, _ = map(json.loads, text.splitlines())
    assert first["rows"] == [{"transaction_id": "T1", "refund_amount": "1.00"}]
    assert "rows" not in second
    assert stat.S_IMODE((tmp_path / "log").stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "document",
    [None, [], {}, {"template": "refund"}, {"template": 1}, {"more": 1}, "text"],
)
def test_what_is_no_request_is_refused(document):
    with pytest.raises(UsageError, match="not one that a signer understands"):
        signing_request_of(document)


def test_the_rate_limiter_lets_a_pace_pass():
    now = [0.0]
    rate_limiter = RateLimiter(2, seconds=lambda: now[0])
    assert [rate_limiter.lets_pass() for _ in range(5)] == [True, True, True, True, False]
    now[0] = 0.5
    assert [rate_limiter.lets_pass() for _ in range(2)] == [True, False]


def test_the_socket_is_for_its_owner_or_a_group(short_folder):
    for group, mode in (("", 0o600), ('group = "root"', 0o660)):
        given = signer_settings(write_rules(short_folder, desk=Desk(), head=group)).file
        with closing(listening(given)):
            assert stat.S_IMODE(given.socket.stat().st_mode) == mode
        given.socket.unlink()
    given = signer_settings(write_rules(short_folder, desk=Desk(), head='group = "no-such"')).file
    with pytest.raises(ConfigurationError, match="no group no-such"):
        listening(given)
