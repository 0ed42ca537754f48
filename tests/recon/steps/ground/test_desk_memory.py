"""Words that were taken out of the database: the desk remembers that it gave them."""

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import delete

from recon.model.errors import UsageError
from recon.steps.acts import Approve, Place, RejectInstructions, say
from recon.steps.care.verify import unendorsed
from recon.steps.ground.desk import go_on_restored, lost_word, name_of
from recon.steps.ground.environment import Environment
from recon.steps.money.approve import waiting
from recon.steps.money.gate import gate_of
from recon.store.database.engine import Store, parse_url
from recon.store.money.endorsement_rows import Endorsed
from recon.store.nights import runs
from recon.store.schema import endorsement
from reports.handed import drawings
from tests.recon.steps.ground.test_endorsed import keyed, settled, wait_for_two

__all__ = ["keyed"]


def speak(environment: Environment, name: str) -> None:
    """The yes of one person to all that waits."""
    yes = Approve(list_digest=waiting(environment).wanted.digest)
    say(yes, who=(name, None), place=Place(environment, drawings))


def test_a_database_without_any_word_is_missed(
    begun: Callable[[Any], Any], keyed: dict[str, str]
) -> None:
    """Who takes all words away is noticed by the next one."""
    merchant = begun(wait_for_two)
    merchant.variables |= keyed
    with merchant.environment() as environment:
        speak(environment, "jo")
        merchant.as_owner(delete(endorsement))
        with pytest.raises(UsageError, match="the database lacks it"):
            speak(environment, "kim")
        assert go_on_restored(environment) == 1
        assert go_on_restored(environment) == 0
        with environment.store.reading() as connection:
            assert list(Endorsed(environment.desk).words(connection)) == []


def test_the_newest_word_is_missed_too(begun: Callable[[Any], Any], keyed: dict[str, str]) -> None:
    """A deleted rejection leaves no gap in the numbers; the desk gives its number to nobody."""
    merchant = begun(wait_for_two)
    merchant.variables |= keyed
    with merchant.environment() as environment:
        ids = tuple(one.instruction_id for one in waiting(environment).wanted.items)
        speak(environment, "jo")
        no = RejectInstructions(instructions=ids, reason="not meant")
        say(no, who=("kim", None), place=Place(environment, drawings))
        merchant.as_owner(delete(endorsement).where(endorsement.c.sequence == 2))
        with pytest.raises(UsageError, match="signed word 2"):
            say(no, who=("jo", None), place=Place(environment, drawings))


def told_no(merchant: Any, keyed: dict[str, str]) -> None:
    """Two people said yes, and one of them no before a night came; then the no is taken away."""
    merchant.variables |= keyed
    with merchant.environment() as environment:
        ids = tuple(one.instruction_id for one in waiting(environment).wanted.items)
        speak(environment, "jo")
        speak(environment, "kim")
        merchant.as_owner("UPDATE instruction SET state = 'planned'")
        no = RejectInstructions(instructions=ids, reason="not meant")
        say(no, who=("kim", None), place=Place(environment, drawings))
    merchant.variables |= {"RECON_DESK_KEY_FILE": ""}


def unguard(merchant: Any) -> None:
    """The history without what refuses changes, as its owner can make it."""
    if merchant.variables["RECON_DATABASE_URL"].startswith("sqlite:"):
        merchant.as_owner("DROP TRIGGER history_no_delete", "DROP TRIGGER history_no_update")
    else:
        merchant.as_owner("ALTER TABLE history DISABLE TRIGGER USER")


def forget_no(merchant: Any) -> None:
    """The newest word and every link since it, as if it had never been said; the chain closes."""
    unguard(merchant)
    merchant.as_owner(
        "DELETE FROM endorsement WHERE sequence = 3",
        "DELETE FROM history WHERE sequence >= "
        "(SELECT min(sequence) FROM history WHERE event = 'withdrawn')",
        "UPDATE instruction SET state = 'approved'",
    )


def test_a_night_misses_the_newest_word_by_its_link(
    begun: Callable[[Any], Any], keyed: dict[str, str]
) -> None:
    """A deleted rejection stops the night that comes before anybody speaks again."""
    merchant = begun(wait_for_two)
    told_no(merchant, keyed)
    merchant.as_owner(delete(endorsement).where(endorsement.c.sequence == 3))
    with merchant.environment() as environment, environment.store.reading() as connection:
        assert "endorsement 3 is gone" in Endorsed(environment.desk).taken_away(connection)
        assert any(
            "endorsement 3 stands in" in one
            for one in unendorsed(connection, environment=environment)
        )
    merchant.move_money()

    assert merchant.effects() == []
    assert settled(merchant) != ""


def test_a_night_misses_a_word_that_is_gone_with_its_links(
    begun: Callable[[Any], Any], keyed: dict[str, str]
) -> None:
    """Where history and head files were cut as well, the desk's published memory says so."""
    merchant = begun(wait_for_two)
    told_no(merchant, keyed)
    forget_no(merchant)
    (merchant.folder / "reports" / "history-head.jsonl").unlink()
    with merchant.environment() as environment:
        told = lost_word(environment.desk, store=environment.store)
    assert "signed word 3, and the database lacks it" in told
    with merchant.environment() as environment, environment.store.reading() as connection:
        run = runs.newest_live(connection, ("100042", "100042001"))
        assert run is not None
    with merchant.environment() as environment:
        assert gate_of(run, environment=environment).closed_because
    merchant.move_money()

    assert merchant.effects() == []


def test_words_of_another_database_count_in_none(
    begun: Callable[[Any], Any], keyed: dict[str, str]
) -> None:
    """Rows of another database with one desk's signature are nobody's word here."""
    merchant = begun(wait_for_two)
    merchant.variables |= keyed
    with merchant.environment() as environment:
        speak(environment, "jo")
        unguard(merchant)
        merchant.as_owner("UPDATE history SET hash = 'x' WHERE sequence = 1")
        with environment.store.reading() as connection:
            words = Endorsed(environment.desk)
            assert list(words.words(connection)) == []
            assert "it was said in another database" in next(words.broken(connection))


def test_night_and_desk_name_one_database_alike() -> None:
    """Their logins differ; a memory under another name would never be looked at."""
    names = {
        name_of(Store(parse_url(f"postgresql://{login}@db:5432/recon?connect_timeout=3")))
        for login in ("recon_desk:a", "recon_night:b", "recon_night")
    }
    assert names == {"postgresql://db:5432/recon"}
