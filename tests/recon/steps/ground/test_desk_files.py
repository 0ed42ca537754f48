"""What the desk goes by is the desk's: files of who is who, and the book of codes."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from pydantic import SecretStr
from sqlalchemy import delete

from recon.model.errors import ConfigurationError, UsageError
from recon.steps.acts import Place, ReleaseHold, say
from recon.steps.ground.desk import refuse_open_files
from recon.steps.ground.environment import Environment
from recon.steps.ground.identity import WRONG_CODES_MAX, identify
from recon.store.schema import used_code, wrong_code
from reports.handed import drawings
from tests.recon.steps.ground.test_endorsed import keyed
from tests.recon.steps.ground.test_identity import code_of, declare

__all__ = ["keyed"]


@pytest.fixture
def live(merchant: Any, keyed: dict[str, str]) -> Iterator[Environment]:
    """A desk towards a gateway that is not on this machine, and anna with a code."""
    declare(merchant)
    merchant.variables |= keyed | {"RECON_GATEWAY_BASE_URL": "https://gateway.example"}
    with merchant.environment() as opened:
        yield opened


@pytest.mark.parametrize("mode", [0o664, 0o646])
def test_a_desk_whose_approvers_others_can_change_hears_nobody(
    merchant: Any, live: Environment, mode: int
) -> None:
    """By name and with the command that closes it; not so at the sandbox."""
    path = merchant.folder / "config" / "approvers.toml"
    refuse_open_files(live)
    path.chmod(mode)
    word = ReleaseHold(hold="r1", reason="x")
    with pytest.raises(ConfigurationError, match=r"approvers\.toml says who is heard"):
        say(word, who=("anna", None), place=Place(live, drawings))
    merchant.variables["RECON_GATEWAY_BASE_URL"] = merchant.sandbox.base_url
    with merchant.environment() as sandbox:
        refuse_open_files(sandbox)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives a file away")
def test_a_file_of_somebody_else_says_nobody(merchant: Any, live: Environment) -> None:
    """Whoever owns it can change it, whatever its mode."""
    os.chown(merchant.folder / "config" / "approvers.toml", 4242, -1)
    with pytest.raises(ConfigurationError, match=r"approvers\.toml says who is heard"):
        refuse_open_files(live)


def test_the_nights_database_does_not_forget_guesses_for_anybody(
    merchant: Any, live: Environment
) -> None:
    """Wrong and used codes stand in the desk's own file: deleting rows gives no new try."""
    right = code_of(merchant)
    identify("anna", code=right, environment=live)
    for _ in range(WRONG_CODES_MAX):
        with pytest.raises(UsageError, match="is not right"):
            identify("anna", code=SecretStr("1"), environment=live, origin="login 7")
    merchant.as_owner(delete(wrong_code), delete(used_code))
    with pytest.raises(UsageError, match="wait, then try again"):
        identify("anna", code=SecretStr("1"), environment=live, origin="login 7")
    with pytest.raises(UsageError, match="was used before"):
        identify("anna", code=right, environment=live)
    assert live.desk.codes is not None
    assert (live.desk.codes.stat().st_mode & 0o777) == 0o600
    with closing(sqlite3.connect(live.desk.codes)) as book:
        assert book.execute("SELECT count(*) FROM wrong_code").fetchone() == (WRONG_CODES_MAX,)
