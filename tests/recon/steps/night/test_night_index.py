from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from recon.model.errors import OutputError
from recon.model.nights import Mode, NightRequest
from recon.steps.night.lookout import index_after
from reports.reading.index_workbook import write_index


def after(environment: Any, *, write: Any = write_index, **changes: Any) -> list[str]:
    """What a night that has ended says of its index."""
    account = next(iter(environment.settings.accounts)).split("/")
    request = replace(NightRequest(*account, date(2026, 11, 20), Mode.LIVE), **changes)
    said: list[str] = []
    index_after(request, environment=environment, write=write, say=said.append)
    return said


def with_accounts(environment: Any, *, count: int) -> Any:
    """The same environment with this many declared accounts, each with the folder of the first."""
    key, first = next(iter(environment.settings.accounts.items()))
    named = [key, *(f"{key}{number}" for number in range(1, count))]
    settings = environment.settings.model_copy(update={"accounts": dict.fromkeys(named, first)})
    return replace(environment, settings=settings)


@pytest.mark.parametrize(
    ("error", "told"),
    [(OutputError("the disk is full"), "the disk is full"), (KeyError("4111"), "KeyError")],
)
def test_an_index_that_fails_never_fails_the_night(
    merchant: Any, error: Exception, told: str
) -> None:
    """People read why and what to do; the text of a foreign error is not shown."""

    def failing(*_: object, day: date, folder: Path) -> Path:
        del day, folder
        raise error

    with merchant.environment() as environment:
        (said,) = after(with_accounts(environment, count=2), write=failing)

    assert said == (
        f"The index over all accounts was not written ({told}). The night and its workbook "
        "are kept: write it with `recon workbook 2026-11-20 --index FOLDER`."
    )
