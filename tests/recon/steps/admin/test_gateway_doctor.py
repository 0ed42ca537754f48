import http.client
import json
import re
import socket
import ssl
import threading
import tomllib
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from email.utils import format_datetime
from pathlib import Path
from urllib.parse import parse_qs

import pytest

from recon.config.settings import load_settings
from recon.gateway_client import GatewayInterface
from recon.gateway_client.addresses import Route
from recon.model.errors import ReconError
from recon.steps.admin.gateway_doctor import (
    MATCHES_FOR_ENFORCE,
    _amounts,
    connection_reported,
    gateway_checks,
)
from tests.loopback import answering

ACCOUNT = ("100042", "100042001")


def found(merchant, *orders, refunded=(), **variables):
    settings = load_settings(merchant.variables | variables)
    checks = gateway_checks(
        settings,
        account=ACCOUNT,
        clock=lambda: datetime.now(UTC),
        orders=orders,
        refunded=refunded,
    )
    return {check.name: check for check in checks}


def test_a_right_gateway_passes_every_line(merchant):
    """What was not looked at is told, too; a read moves and stores nothing."""
    checks = found(merchant)

    assert {"profile", "connection", "query", "signature rule", "replies", "codes"} <= set(checks)
    assert all(check.ok for check in checks.values()), checks
    assert "no TLS" in checks["connection"].sentence
    assert checks["signature rule"].sentence == "accepted as configured"
    assert "not looked at; name orders with --order" in checks["amounts"].sentence
    assert "is refused with code I0013" in checks["refusals"].sentence
    assert checks["further fields"].sentence.endswith("is ignored")
    assert merchant.effects() == []
    assert merchant.rows("SELECT count(*) FROM answer_part") == [(0,)]


def test_another_signature_rule_is_found_and_written_out(merchant):
    """Ours refused, another accepted: its lines stand there, ready to be pasted."""
    config = merchant.folder / "config" / "signature.toml"
    config.write_text('[user]\nalgorithm = "hmac-sha256"\n')

    rule = found(merchant)["signature rule"]

    assert not rule.ok
    assert "sha256 over merchant_id + account_id" in rule.sentence
    config.write_text("\n".join(rule.sentence.splitlines()[1:]))
    assert found(merchant)["signature rule"].ok


def test_a_wrong_key_is_no_wrong_rule(merchant):
    rule = found(merchant, RECON_SIGN_KEY="wrong")["signature rule"]

    assert not rule.ok
    assert "check the sign key" in rule.sentence
    assert "wrong" not in rule.sentence


def test_an_address_that_is_not_registered_says_what_to_register(merchant):
    """Status 7 is not a question of signatures."""
    with merchant.unregistered():
        checks = found(merchant)

    assert not checks["query"].ok
    assert "register the outgoing IP address" in checks["query"].sentence
    assert "signature rule" not in checks


def test_a_code_that_nobody_mapped_is_named_with_the_line_to_paste(merchant):
    """A code of a stored answer that rules.toml does not have is counted and written out."""
    payment = merchant.payments("authorised")[0]
    merchant.drop("orders.csv", merchant.order(payment))
    merchant.night()
    rules = merchant.folder / "config" / "rules.toml"
    rules.write_text(
        "\n".join(line for line in rules.read_text().splitlines() if "2000" not in line)
    )

    codes = found(merchant)["codes"]

    assert not codes.ok
    assert "payment_status 2000 (1 answers" in codes.sentence
    assert payment.order_no in codes.sentence
    assert '2000 = "?"' in codes.sentence


@pytest.mark.parametrize(
    ("configured", "skew", "tamper", "name", "ok", "says"),
    [
        # Under warn the doctor proposes what the replies have earned.
        (
            *('reply_signatures = "warn"\n', 0, False, "replies", True),
            rf'{MATCHES_FOR_ENFORCE} replies in a row.*reply_signatures = "enforce"',
        ),
        # Said before a night: such a reply would never be believed.
        ("", 0, True, "replies", False, "wrong signature"),
        # The gateway's Date header beside our clock; a minute is too much.
        ("", 0, False, "clock", True, "^(?!.*NTP)"),
        ("", 20, False, "clock", True, "^(?!.*NTP)"),
        ("", -600, False, "clock", False, "NTP"),
        ("", 600, False, "clock", False, "NTP"),
    ],
)
def test_a_gateway_is_known_by_signatures_and_clock_of_its_replies(
    merchant, configured, skew, name, says, *, tamper, ok
):
    merchant.configure("gateway.toml", configured)

    with played(merchant, skew=timedelta(seconds=skew), tamper=tamper) as base_url:
        check = found(merchant, RECON_GATEWAY_BASE_URL=base_url)[name]

    assert check.ok is ok
    assert re.search(says, check.sentence, re.DOTALL), check


def played(merchant, *, skew, tamper):
    """A gateway in front of the sandbox with a clock of its own, perhaps with wrong signatures."""
    host, port = merchant.sandbox.base_url.removeprefix("http://").split(":")

    def reply(request, body):
        behind = http.client.HTTPConnection(host, int(port), timeout=5)
        behind.request(
            "POST", request.path, body, {"Content-Type": request.headers["Content-Type"]}
        )
        reply = json.loads(behind.getresponse().read())
        behind.close()
        asked = parse_qs(body.decode())["encryption_data"][0]
        reply["encryption_data"] = "0" * 64 if tamper else asked
        request.date_time_string = lambda: format_datetime(datetime.now(UTC) + skew, usegmt=True)
        return 200, {}, json.dumps(reply).encode()

    return answering(reply)


def order_of(merchant, currency):
    wanted = (one for one in merchant.effects(origin="seed") if one["currency"] == currency)
    return str(next(one["order_no"] for one in wanted if one["account_id"] == ACCOUNT[1]))


def refunded_order(merchant):
    effects = merchant.effects(origin="seed")
    mine = (one for one in effects if one["account_id"] == ACCOUNT[1])
    return str(next(one["order_no"] for one in mine if one["operation"] == "refund"))


def test_decimals_that_differ_from_ours_are_written_out(merchant):
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


def test_whether_refunds_are_shown_is_seen_of_a_refunded_order(merchant):
    """The sandbox shows them; an order without one stands for a gateway that does not.

    What rules.toml declares is held against an order that is shown as refunded.
    """
    back, kept = refunded_order(merchant), merchant.payments("captured")[0].order_no

    shown = found(merchant, refunded=(back,))["refunds"]
    hidden = found(merchant, refunded=(back, kept))["refunds"]

    assert shown.ok
    assert not hidden.ok
    assert f"shown otherwise: {kept} as 3000" in hidden.sentence
    assert back not in hidden.sentence
    merchant.configure("rules.toml", "[gateway]\nshows_refunds = false", instead_of="[gateway]")
    refuted = found(merchant, refunded=(back,))["refunds"]
    assert not refuted.ok
    assert f"yet the gateway shows {back} as 4" in refuted.sentence


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
def test_the_advice_on_decimals_breaks_no_amount_that_needs_more(currency, texts, advice):
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


SELF_SIGNED = Path(__file__).parents[2] / "gateway_client" / "loopback.pem"
NOW = datetime(2026, 11, 20, tzinfo=UTC)


@contextmanager
def listening():
    """A server that does the TLS handshake with a certificate of its own and hangs up."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(SELF_SIGNED)
    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=_greet, args=(server, context))
        thread.start()
        yield f"https://127.0.0.1:{server.getsockname()[1]}"
        thread.join()


def _greet(server, context):
    connection, _ = server.accept()
    try:
        context.wrap_socket(connection, server_side=True).close()
    except OSError:
        connection.close()


def told(base_url, *, ca_file, now=NOW):
    return connection_reported(base_url, route=Route(ca_file=ca_file), connect_seconds=2, now=now)


def test_a_trusted_gateway_shows_its_protocol_and_the_end_of_its_certificate():
    with listening() as base_url:
        line = told(base_url, ca_file=SELF_SIGNED)

    match = re.search(r" answers over TLSv1\.[23]; its certificate ends on (\S+)$", line)
    soon = datetime.fromisoformat(match[1]).replace(tzinfo=UTC) - timedelta(days=10)
    with listening() as base_url, pytest.raises(ReconError, match="in 10 days: ask the gateway"):
        told(base_url, ca_file=SELF_SIGNED, now=soon)


def test_a_certificate_of_a_stranger_says_what_to_name():
    with listening() as base_url, pytest.raises(ReconError, match="ca_file"):
        told(base_url, ca_file=None)


@pytest.mark.parametrize(
    ("base_url", "ca_file"),
    [("http://127.0.0.1:9", None), ("https://127.0.0.1:9", Path("/nowhere/ca.pem"))],
)
def test_what_keeps_a_connection_from_standing_is_a_sentence(base_url, ca_file):
    with pytest.raises(ReconError, match="cannot be reached"):
        told(base_url, ca_file=ca_file)
