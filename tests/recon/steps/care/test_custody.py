"""Nights that a signer signs for: with it, against it, without it; and who holds the key, told."""

import random
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from recon.config.settings import load_settings
from recon.desk.held_keys import SANDBOX_KEYS
from recon.model.errors import ConfigurationError
from recon.model.words import Verdict
from recon.steps.care.doctor import checks, custody_told, refuse_plain_key
from recon.steps.ground.identity import identify
from recon.steps.money.approve import Narrowing, approve, waiting
from tests.recon.signer.conftest import Desk, RunningSigner, signing, signing_here
from tests.recon.steps.conftest import Merchant

RULES = """
[accounts."100042/100042001".by_rule.capture.any]
count = 100
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    """A short path, for a socket."""
    with tempfile.TemporaryDirectory(prefix="sign-") as folder:
        yield Path(folder)


def keyless(merchant: Merchant, signer: RunningSigner) -> None:
    """From now on the merchant's nights have no key, by which they would know the sandbox."""
    limits = (
        f"[limits.{code}]\nnight = 100000000\n" for code in ("EUR", "GBP", "USD", "JPY", "KWD")
    )
    (merchant.folder / "config" / "limits.toml").write_text("".join(limits))
    merchant.variables.pop("RECON_SIGN_KEY", None)
    merchant.variables["RECON_SIGNER"] = str(signer.socket.path)


def instruct(merchant: Merchant, name: str = "orders.csv", first: int = 0) -> None:
    """Two captures and a refund."""
    captured = merchant.payments("captured")[first]
    orders = [
        merchant.order(one, action="capture", status="authorised")
        for one in merchant.payments("authorised")[first : first + 2]
    ]
    merchant.drop(name, *orders, merchant.order(captured, action="refund"))


def holds(merchant: Merchant) -> list[str]:
    """Why instructions wait."""
    with merchant.environment() as environment, environment.store.reading() as connection:
        from sqlalchemy import text

        query = text("SELECT hold FROM instruction WHERE hold <> '' ORDER BY instruction_id")
        return list(connection.execute(query).scalars())


def test_a_night_without_a_key_sends_what_its_signer_signs(
    merchant: Merchant, folder: Path
) -> None:
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


def test_a_signer_that_dies_in_the_night_leaves_nothing_in_doubt(
    merchant: Merchant, folder: Path
) -> None:
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
    merchant: Merchant, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It failed before the first byte: every instruction stays approved, and the stop is told."""
    with signing(folder, key="sandbox", more=RULES) as signer:
        keyless(merchant, signer)
        instruct(merchant)
        from recon.steps.money import settle as settle_step

        real = settle_step.lapse

        def killed(environment: object) -> int:
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


PEOPLE = """
[approvers.jo]
name = "Jo Ahn"
role = "reviewer"
limit = { EUR = 1000 }
[approvers.kim]
name = "Kim Bell"
limit = { EUR = 1000 }
"""


def test_a_night_sends_the_refund_that_two_people_endorsed(
    merchant: Merchant, folder: Path
) -> None:
    """The signer sees what they saw, under the desk's signature, and signs that row alone."""
    (merchant.folder / "config" / "approvers.toml").write_text(PEOPLE)
    path = merchant.folder / "config" / "merchants.toml"
    path.write_text(path.read_text() + "auto_approve = false\n")
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
            chosen = waiting(environment).wanted.items[0].instruction_id
            only = Narrowing(instruction_ids=(chosen,))
            digest = waiting(environment, only=only).wanted.digest
            for name in ("jo", "kim"):
                person = identify(name, code=None, environment=environment)
                approve(digest, person=person, environment=environment, only=only)
        merchant.move_money()
    assert [row["operation"] for row in merchant.effects()] == ["refund"]
    assert merchant.instruction_states() == {"confirmed": 1, "planned": 1}


def test_a_key_beside_a_signer_is_refused(merchant: Merchant) -> None:
    """It would lie where the signer keeps it from."""
    merchant.variables["RECON_SIGNER"] = "/nowhere"
    with pytest.raises(ConfigurationError, match=r"RECON_SIGN_KEY gives one here as well"):
        load_settings(merchant.variables)
    del merchant.variables["RECON_SIGN_KEY"]
    with pytest.raises(ConfigurationError, match="/nowhere holds the sign keys, not this process"):
        load_settings(merchant.variables).sign_keys.of("100042/100042001")


def test_a_run_of_prefect_for_real_money_has_no_key(merchant: Merchant) -> None:
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
    with (merchant.folder / "config" / "gateway.toml").open("a") as gateway:
        gateway.write("plain_key_under_prefect = true\n")
    refuse_plain_key(load_settings(live), variables=live)


def test_the_doctor_says_who_holds_the_key(merchant: Merchant, folder: Path) -> None:
    """In the environment, in a file, with a signer of this user; loud where money is real."""
    ours = merchant.variables
    live = {**ours, "RECON_GATEWAY_BASE_URL": "https://gateway.example"}
    assert "protects nothing real" in custody_told(load_settings(ours), variables=ours)
    assert custody_told(load_settings(live), variables=live).startswith("WARNING: in the env")
    under = {**live, "PREFECT_API_URL": "http://127.0.0.1:4200/api"}
    with pytest.raises(ConfigurationError, match="everybody who may start a run could read it"):
        custody_told(load_settings(under), variables=under)
    with signing(folder, key="sandbox") as signer:
        keyless(merchant, signer)
        looked = checks(
            ours, clock=lambda: datetime(2026, 11, 21, 2, tzinfo=UTC), randomness=random.Random(1)
        )
        (line,) = [check for check in looked if check.name == "sign key"]
        assert "of this same user" in line.sentence
        assert line.ok
    with pytest.raises(ConfigurationError, match="did not answer"):
        custody_told(load_settings(ours), variables=ours)
