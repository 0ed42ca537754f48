"""The doctor finds out, by reads only, that a gateway is the API document taken literally."""

from datetime import UTC, datetime

import pytest

from recon.config.settings import load_settings
from recon.steps.admin.gateway_doctor import gateway_checks
from tests.literal.gateway import ACCOUNT, KEY, MERCHANT, Payment, literal_gateway

AT = "20261120100000"


class Office:
    """Somebody before the first night, with this gateway's address and key."""

    def __init__(self, folder, *, url, database_url, gateway):
        self.config = folder / "config"
        self.config.mkdir()
        self.gateway = gateway
        self.variables = {
            "RECON_GATEWAY_BASE_URL": url,
            "RECON_SIGN_KEY": KEY,
            "RECON_DATABASE_URL": database_url,
            "RECON_CONFIG_DIR": str(self.config),
        }
        self.write("gateway.toml", "calls_per_second = 1000\n")

    def write(self, name, text):
        """A file of the configuration."""
        (self.config / name).write_text(text)

    def payment(self, order_no, currency, *, state="paid"):
        """A payment of ten, which this gateway writes with two decimals in every currency."""
        self.gateway.seed(Payment(order_no, f"T-{order_no}", currency, "10.00", AT, state))
        return order_no

    def found(self, *orders, refunded=()):
        """The doctor's lines by name."""
        checks = gateway_checks(
            load_settings(self.variables),
            account=(MERCHANT, ACCOUNT),
            clock=lambda: datetime.now(UTC),
            orders=orders,
            refunded=refunded,
        )
        return {check.name: check for check in checks}


@pytest.fixture
def office(tmp_path, sqlite_url):
    """One that has read the document and configured nothing of its own."""
    with literal_gateway() as (url, gateway):
        yield Office(tmp_path, url=url, database_url=sqlite_url, gateway=gateway)


def test_every_line_that_needs_no_order_tells_this_gateway_from_the_sandbox(office):
    """No signature, a row for what it does not know, words without a code, no further field."""
    checks = office.found()

    assert "query replies carry no signature" in checks["replies"].sentence
    assert "has a row with query_result 2, not_found" in checks["unknown orders"].sentence
    assert "with words and no code" in checks["refusals"].sentence
    assert "is refused (HTTP 200, return_status 3" in checks["further fields"].sentence
    assert all(check.ok for check in checks.values()), checks
    assert {path for path, _ in office.gateway.asked} == {"/v1/retrievalTrans"}
    assert office.gateway.effects == []


def test_dinar_of_two_decimals_are_seen_and_the_pasted_line_is_right(office):
    named = (office.payment("D-1", "KWD"), office.payment("Y-1", "JPY"))

    wrong = office.found(*named)["amounts of KWD"]
    office.write("profiles.toml", "\n".join(wrong.sentence.splitlines()[1:]))
    right = office.found(*named)

    assert not wrong.ok
    assert "KWD is written with 2 decimals, such as 10.00; ours has 3" in wrong.sentence
    assert right["amounts of KWD"].ok
    assert right["amounts of JPY"].ok


@pytest.mark.parametrize(
    ("state", "code"), [("authorised", "2100"), ("in_review", "1510"), ("cancelled", "5100")]
)
def test_its_own_statuses_are_to_be_mapped(office, state, code):
    """The document shows 3000 only; what another code means, a person has to say."""
    named = office.payment("S-1", "EUR", state=state)

    new = office.found(named)["payment statuses"]
    office.write("rules.toml", f'[payment_status]\n{code} = "{state}"\n')

    assert not new.ok
    assert f'{code} = "?"' in new.sentence
    assert office.found(named)["payment statuses"].ok


def test_that_it_shows_no_refund_is_seen_and_the_pasted_line_says_so(office):
    named = office.payment("R-1", "EUR")

    hidden = office.found(refunded=(named,))["refunds"]
    lines = hidden.sentence.splitlines()
    office.write("rules.toml", "\n".join(lines[lines.index("[gateway]") :]))

    assert not hidden.ok
    assert "R-1 as 3000" in hidden.sentence
    declared = office.found(refunded=(named,))["refunds"]
    assert declared.ok
    assert "waits for two people" in declared.sentence
    assert office.found()["refunds"] == declared


def test_a_gateway_that_answers_anybody_is_a_fault(office, monkeypatch):
    monkeypatch.setattr("tests.literal.gateway._verify", lambda *_: None)

    refusals = office.found()["refusals"]

    assert not refusals.ok
    assert "a query with nobody's signature was answered" in refusals.sentence
