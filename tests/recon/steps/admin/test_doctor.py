"""What `recon doctor` says: each trouble fails its own line, in words that say what to do."""

import random
import re
import shutil
import socket
import tempfile
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from recon.config.settings import load_settings
from recon.desk.held_keys import SANDBOX_KEYS, make_keys
from recon.model.errors import ConfigurationError
from recon.model.terms import Verdict
from recon.steps.admin import doctor
from recon.steps.admin.doctor import Examined, checks, desk, refuse_plain_key, sign_key
from recon.steps.money.approve import Narrowing, approve, waiting
from recon.steps.money.gate import stop_sending
from recon.steps.runtime import environment
from recon.steps.runtime.environment import CLOCK_VARIABLE, system_clock
from recon.steps.runtime.identity import identify
from recon.store.database.engine import open_store
from tests.recon.signer.conftest import Desk, signing, signing_here
from tests.recon.steps.conftest import ACCOUNT, MERCHANT, archive_of
from tests.recon.steps.people import declared

LINES = {
    *("configuration", "database", "sending", "codes", "notifications", "replies", "limits"),
    *("sign", "approvers", "desk", "cluster", "notices", "clock", "disk", "permissions"),
    *("inbox", "reports", "ledger", "history", "facts", "nights", "gateway"),
}
REAL = {"RECON_SIGN_KEY": "of real money"}
ANNA_AND_BEN = (
    '[approvers.anna]\nname = "Anna"\ncode_secret_env = "RECON_CODE_ANNA"\n'
    '[approvers.ben]\nname = "Ben"\n'
)
LIMIT = "[limits.EUR]\nitem = 10\n"


def found(merchant, **variables):
    told = checks(merchant.variables | variables, clock=merchant.clock, randomness=random.Random(1))
    return {check.name.split()[0]: check for check in told}


def place_of(variables):
    return Examined(load_settings(variables), variables, system_clock, random.Random(1))


def with_file(name, text):
    def configure(merchant):
        merchant.configure(name, text)

    return configure


def nothing(_):
    """All is well with the merchant."""


def of_older_program(merchant):
    merchant.sqlite_path  # noqa: B018 - a server's tables are not put back
    merchant.as_owner("UPDATE alembic_version SET version_num = '0000'")


def reports_is_a_file(merchant):
    shutil.rmtree(merchant.folder / "reports", ignore_errors=True)
    (merchant.folder / "reports").write_text("a file")


def stopped(merchant):
    with merchant.environment() as environment:
        stop_sending(by="Otto Ops", reason="a wrong file", environment=environment)


def without_its_settlement_folder(merchant):
    table = f'[accounts."{MERCHANT}/{ACCOUNT}".settlement]'
    merchant.configure("merchants.toml", f'\n{table}\ninbox = "/nowhere"\n')


def without_a_code(merchant):
    merchant.drop("orders.csv", merchant.order(merchant.payments("authorised")[0]))
    merchant.night()
    rules = merchant.folder / "config" / "rules.toml"
    kept = [line for line in rules.read_text().splitlines() if "2000" not in line]
    rules.write_text("\n".join(kept))


def without_facts(*, cut):
    def lose(merchant):
        merchant.drop("orders.csv", merchant.order(merchant.payments("authorised")[0]))
        merchant.night()
        (path,) = Path(archive_of(merchant).shown).rglob("facts/orders/**/*.parquet")
        path.write_bytes(path.read_bytes()[:-1]) if cut else path.unlink()

    return lose


def test_a_healthy_merchant_passes_every_check(merchant, monkeypatch):
    """With everything in place each line says so, and the database is opened once."""
    opened: list[str] = []

    def open_once(url, **named):
        opened.append(url)
        return open_store(url, **named)

    monkeypatch.setattr(environment, "open_store", open_once)
    told = found(merchant)

    assert len(opened) == 1
    assert {*told} == LINES
    assert all(check.ok for check in told.values()), told


def test_nights_are_looked_at_by_their_own_time(merchant):
    """At the demo no night is missing because today is later than its newest business date."""
    merchant.night()
    ahead = merchant.now - system_clock() + timedelta(minutes=1)
    variables = merchant.variables | {CLOCK_VARIABLE: str(int(ahead.total_seconds()))}
    answers = checks(variables, clock=system_clock, randomness=random.Random(1))
    moved = {check.name.split()[0]: check for check in answers}

    assert moved["nights"] == found(merchant)["nights"]
    assert moved["clock"].ok, moved["clock"]


@pytest.mark.parametrize(
    ("harm", "variables", "name", "says"),
    [
        (nothing, {"RECON_SIGN_KEY": ""}, "RECON_SIGN_KEY", "is not set"),
        (nothing, {"RECON_DATABASE_URL": "sqlite:////no/r.sqlite"}, "database", "does not exist"),
        (nothing, {"RECON_GATEWAY_BASE_URL": "http://127.0.0.1:9"}, "gateway", "not be reached"),
        (nothing, {"RECON_SIGN_KEY": "wrong"}, "gateway", "sign key"),
        (nothing, {"RECON_GATEWAY_BASE_URL": "https://127.0.0.1:9/v1"}, "gateway", "ends in /v1"),
        (nothing, REAL, "limits", "every instruction waits for two people"),
        (of_older_program, {}, "database", "recon db upgrade"),
        (reports_is_a_file, {}, "reports", "reports"),
        (stopped, {}, "sending", "a wrong file"),
        (without_its_settlement_folder, {}, "settlement", "/nowhere does not exist"),
        (without_facts(cut=False), {}, "facts", "the next night reads it again from"),
        (without_facts(cut=True), {}, "facts", "is gone or was changed"),
        (with_file("gateway.toml", "calls_per_seconds = 5\n"), {}, "configuration", "per_seconds"),
        (
            with_file("gateway.toml", 'reply_signatures = "warn"\n'),
            {},
            "replies",
            "no live night will send",
        ),
        (with_file("approvers.toml", ANNA_AND_BEN), {}, "approvers", "secret of anna"),
    ],
)
def test_what_is_wrong_fails_its_own_line_with_what_to_do(merchant, harm, variables, name, says):
    """A missing key, folder or gateway, tables of another version, a misspelt key, a switch."""
    harm(merchant)

    check = found(merchant, **variables)[name]

    assert not check.ok
    assert says in check.sentence


@pytest.mark.parametrize(
    ("state", "variables", "name", "says"),
    [
        (nothing, {}, "replies", "^profile base, reply_signatures enforce$"),
        (nothing, {}, "limits", "^none set, and the sandbox needs none$"),
        (nothing, {}, "approvers", "nobody is declared"),
        (nothing, {}, "notifications", "^0 kept, none refused$"),
        (
            with_file("limits.toml", LIMIT),
            {},
            "limits",
            "^set for EUR; other currencies have none$",
        ),
        (
            with_file("limits.toml", LIMIT),
            REAL,
            "limits",
            "other currencies have none: what they ask for waits for two people$",
        ),
        (
            with_file(
                "gateway.toml", 'reply_signatures = "off"\nallow_unverified_replies = true\n'
            ),
            {},
            "replies",
            "forge",
        ),
        (
            with_file("approvers.toml", ANNA_AND_BEN),
            {"RECON_CODE_ANNA": "JBSWY3DPEHPK3PXP"},
            "approvers",
            "^(?!.*JBSW).*not authenticated: ben",
        ),
        (without_a_code, {}, "codes", "^not mapped: payment_status 2000;"),
    ],
)
def test_what_the_settings_promise_is_said(merchant, state, variables, name, says):
    """What is bounded, verified, mapped or nobody's; a secret is never shown."""
    state(merchant)

    check = found(merchant, **variables)[name]

    assert check.ok
    assert re.search(says, check.sentence), check


def test_a_clock_that_was_set_back_is_told(merchant):
    merchant.night()
    back = checks(
        merchant.variables,
        clock=lambda: merchant.now - timedelta(hours=1),
        randomness=random.Random(1),
    )
    (clock,) = [check for check in back if check.name == "clock"]

    assert not clock.ok
    assert "set this machine's clock" in clock.sentence


def others_write_merchants(merchant):
    """Who can write it can say where files and reports are."""
    path = merchant.folder / "config" / "merchants.toml"
    path.chmod(0o666)
    return f"chmod o-w {path}"


def others_read_the_database(merchant):
    database = merchant.sqlite_path
    database.chmod(0o644)
    database.parent.chmod(0o755)
    return f"chmod o-rwx {database}"


@pytest.mark.parametrize("harm", [others_write_merchants, others_read_the_database])
def test_what_others_can_change_is_told_with_the_command(merchant, harm):
    """Closed again it is well."""
    says = harm(merchant)
    check = found(merchant)["permissions"]
    assert (check.ok, says in check.sentence) == (False, True)

    merchant.sqlite_path.parent.chmod(0o700)
    (merchant.folder / "config" / "merchants.toml").chmod(0o600)
    assert found(merchant)["permissions"].ok


def test_a_full_disk_is_told_with_what_a_night_needs(merchant, monkeypatch):
    monkeypatch.setattr(doctor, "DISK_FREE_MIN_BYTES", 2**62)
    told = found(merchant)

    for name in ("disk", "reports"):
        assert (told[name].ok, "a night needs" in told[name].sentence) == (False, True), told[name]


def test_a_file_that_a_night_took_is_not_read_again(merchant):
    good = merchant.order(merchant.payments("captured")[0])
    merchant.drop("good.csv", good, good | {"order_no": "X-1", "amount": "12,5"})
    new = found(merchant)["inbox"].sentence
    merchant.night()
    known = found(merchant)["inbox"].sentence
    merchant.drop("second.csv", good | {"order_no": "X-2"})
    both = found(merchant)["inbox"].sentence

    assert new.endswith("1 files: 1 rows can be taken, 1 would be refused")
    assert known.endswith("1 files, 1 of them taken by nights")
    assert both.endswith(
        "2 files, 1 of them taken by nights: 1 rows can be taken, 0 would be refused"
    )


def test_an_unregistered_address_is_named(merchant):
    with merchant.unregistered():
        check = found(merchant)["gateway"]

    assert not check.ok
    assert "register" in check.sentence


KEYS = {"RECON_DESK_PUBLIC_KEY_FILE": "desk.pub", "RECON_DESK_KEY_FILE": "desk.key"}
PUBLIC = {"RECON_DESK_PUBLIC_KEY_FILE": "desk.pub", "RECON_DESK_SOCKET": "desk.sock"}
CODE = {"CODE_JO": "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"}
APART = "the desk alone should have"


@pytest.mark.parametrize(
    ("is_live", "variables", "refused", "says"),
    [
        (False, {}, "", "which everybody knows"),
        (True, {}, "recon enrol --desk", ""),
        (True, KEYS, "", "held by this very process"),
        (True, KEYS | {"RECON_DESK_SOCKET": "none.sock"}, "no desk listens", ""),
        (True, PUBLIC | KEYS, APART, ""),
        (True, PUBLIC | CODE, APART, ""),
        (True, PUBLIC, "", "decisions are taken at {folder}/desk.sock"),
    ],
)
def test_the_desk_is_told_as_what_it_is(merchant, tmp_path, variables, refused, says, *, is_live):
    """Without one what waits for people would wait for ever; a night never has what is the desk's.

    A night that can read the secrets or the key could speak for people.
    """
    make_keys(tmp_path / "desk.key", public=tmp_path / "desk.pub")
    people = '[approvers.jo]\nname = "Jo Ahn"\ncode_secret_env = "CODE_JO"\n'
    (merchant.folder / "config" / "approvers.toml").write_text(people)
    files = {name: str(tmp_path / text) for name, text in variables.items() if "CODE" not in name}
    whole = merchant.variables | variables | files
    if is_live:
        whole |= {"RECON_GATEWAY_BASE_URL": "https://gateway.example"}
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "desk.sock"))
        listener.listen()
        with pytest.raises(ConfigurationError, match=refused) if refused else nullcontext():
            assert says.format(folder=tmp_path) in desk(place_of(whole), "")


RULES = """
[accounts."100042/100042001".by_rule.capture.any]
count = 100
"""


@pytest.fixture
def folder():
    with tempfile.TemporaryDirectory(prefix="sign-") as folder:
        yield Path(folder)


def keyless(merchant, signer):
    """From now on the merchant's nights have no key, by which they would know the sandbox."""
    limits = (
        f"[limits.{code}]\nnight = 100000000\n" for code in ("EUR", "GBP", "USD", "JPY", "KWD")
    )
    (merchant.folder / "config" / "limits.toml").write_text("".join(limits))
    merchant.variables.pop("RECON_SIGN_KEY", None)
    merchant.variables["RECON_SIGNER"] = str(signer.socket.path)


def instruct(merchant, name="orders.csv", first=0):
    captured = merchant.payments("captured")[first]
    orders = [
        merchant.order(one, action="capture", status="authorised")
        for one in merchant.payments("authorised")[first : first + 2]
    ]
    merchant.drop(name, *orders, merchant.order(captured, action="refund"))


def holds(merchant):
    query = "SELECT hold FROM instruction WHERE hold <> '' ORDER BY instruction_id"
    return [hold for (hold,) in merchant.rows(query)]


def test_a_night_without_a_key_sends_what_its_signer_signs(merchant, folder):
    """Captures within the signer's limits leave; the refund that nobody endorsed waits, told."""
    with signing(folder, key="sandbox", more=RULES) as signer:
        keyless(merchant, signer)
        instruct(merchant)
        merchant.night()
        assert [row["operation"] for row in merchant.effects()] == ["capture", "capture"]
        assert merchant.instruction_states() == {"confirmed": 2, "approved": 1}
        (hold,) = holds(merchant)
        assert "the signer refused it: the desk endorsed it for nobody" in hold
        refused = [line for line in signer.log if line["answer"] == "refused"]
        assert {line["operation"] for line in refused} == {"refund"}


def test_a_signer_that_dies_in_the_night_leaves_nothing_in_doubt(merchant, folder):
    """The night says so and ends; nothing left unsigned; the next one goes on where it stopped."""
    with signing(folder, key="sandbox", more=RULES) as signer:
        keyless(merchant, signer)
        instruct(merchant)
        signer.process.kill()
        signer.process.wait(20)
        verdict = merchant.night()
        assert verdict is Verdict.INCOMPLETE
        assert any("signer at" in step.sentence for step in merchant.told)
        assert merchant.effects() == []
        assert merchant.instruction_states() == {"approved": 3}
    with signing(folder, key="sandbox", more=RULES) as signer:
        merchant.wait(hours=24)
        merchant.move_money(date="2026-11-21")
        assert [row["operation"] for row in merchant.effects()] == ["capture", "capture"]
        assert merchant.invariants()["double_effects"] == 0


def test_a_signer_that_dies_between_question_and_money_stops_the_sending(
    merchant, folder, monkeypatch
):
    """It failed before the first byte: every instruction stays approved, and the stop is told."""
    with signing(folder, key="sandbox", more=RULES) as signer:
        keyless(merchant, signer)
        instruct(merchant)
        from recon.steps.money import settle as settle_step

        real = settle_step.lapse

        def killed(environment):
            signer.process.kill()
            signer.process.wait(20)
            return real(environment)  # type: ignore[arg-type]

        monkeypatch.setattr(settle_step, "lapse", killed)
        merchant.move_money()
        settled = next(step for step in merchant.told if step.step == "settle")
        assert "signer at" in str(settled.figures["stopped"])
        assert settled.figures["in_doubt"] == 0
        assert merchant.effects() == []
        assert merchant.instruction_states() == {"approved": 3}


PEOPLE = declared(jo="Jo Ahn", role="reviewer", limit="EUR = 1000") + declared(
    kim="Kim Bell", limit="EUR = 1000"
)


def test_a_night_sends_the_refund_that_two_people_endorsed(merchant, folder):
    """The signer sees what they saw, under the desk's signature, and signs that row alone."""
    (merchant.folder / "config" / "approvers.toml").write_text(PEOPLE)
    merchant.configure("merchants.toml", "auto_approve = false\n")
    two = [one for one in merchant.payments("captured") if one.currency == "EUR"][:2]
    asked = {"status": "partially_refunded", "refund_amount": "1.00", "action_amount": "1.00"}
    merchant.drop("orders.csv", *(merchant.order(one, action="refund", **asked) for one in two))
    assert SANDBOX_KEYS.private is not None
    with signing_here(
        folder,
        clock=merchant.clock,
        desk=Desk(SANDBOX_KEYS.private),
        key="sandbox",
        head="must_be_proven = false",
        more="",
    ) as socket:
        del merchant.variables["RECON_SIGN_KEY"]
        merchant.variables["RECON_SIGNER"] = str(socket)
        merchant.night()
        with merchant.environment() as environment:
            chosen = waiting(environment).approvals.items[0].instruction_id
            only = Narrowing(instruction_ids=(chosen,))
            digest = waiting(environment, only=only).approvals.digest
            for name in ("jo", "kim"):
                person = identify(name, code=None, environment=environment)
                approve(digest, person=person, environment=environment, only=only)
        merchant.move_money()
    assert [row["operation"] for row in merchant.effects()] == ["refund"]
    assert merchant.instruction_states() == {"confirmed": 1, "planned": 1}


def test_a_key_beside_a_signer_is_refused(merchant):
    """It would lie where the signer keeps it from."""
    merchant.variables["RECON_SIGNER"] = "/nowhere"
    with pytest.raises(ConfigurationError, match=r"RECON_SIGN_KEY gives one here as well"):
        load_settings(merchant.variables)
    del merchant.variables["RECON_SIGN_KEY"]
    with pytest.raises(ConfigurationError, match="/nowhere holds the sign keys, not this process"):
        load_settings(merchant.variables).sign_keys.of("100042/100042001")


def test_a_run_of_prefect_for_real_money_has_no_key(merchant):
    """Refused with three ways out; a file, a setting and a signer are such ways."""
    live = {**merchant.variables, "RECON_GATEWAY_BASE_URL": "https://gateway.example"}
    with pytest.raises(ConfigurationError, match=r"RECON_SIGN_KEY holds the sign key.*nothing was"):
        refuse_plain_key(load_settings(live), variables=live)
    refuse_plain_key(load_settings(merchant.variables), variables=merchant.variables)
    kept = merchant.folder / "key"
    kept.write_text("sandbox")
    kept.chmod(0o600)
    filed = {**live, "RECON_SIGN_KEY": "", "RECON_SIGN_KEY_FILE": str(kept)}
    refuse_plain_key(load_settings(filed), variables=filed)
    merchant.configure("gateway.toml", "plain_key_under_prefect = true\n")
    refuse_plain_key(load_settings(live), variables=live)


def test_the_doctor_says_who_holds_the_key(merchant, folder):
    """In the environment, in a file, with a signer of this user; loud where money is real."""
    ours = merchant.variables
    live = {**ours, "RECON_GATEWAY_BASE_URL": "https://gateway.example"}
    assert "protects nothing real" in sign_key(place_of(ours), "")
    assert sign_key(place_of(live), "").startswith("WARNING: in the env")
    under = {**live, "PREFECT_API_URL": "http://127.0.0.1:4200/api"}
    with pytest.raises(ConfigurationError, match="everybody who may start a run could read it"):
        sign_key(place_of(under), "")
    with signing(folder, key="sandbox") as signer:
        keyless(merchant, signer)
        looked = checks(
            ours, clock=lambda: datetime(2026, 11, 21, 2, tzinfo=UTC), randomness=random.Random(1)
        )
        (line,) = [check for check in looked if check.name == "sign key"]
        assert "of this same user" in line.sentence
        assert line.ok
    with pytest.raises(ConfigurationError, match="did not answer"):
        sign_key(place_of(ours), "")
