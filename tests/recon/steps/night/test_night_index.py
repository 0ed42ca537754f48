from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from recon.cli.workbooks import workbooks
from recon.model.errors import OutputError
from recon.model.nights import Mode, NightRequest
from recon.steps.night.night_index import index_after, index_of
from reports.reading.index_workbook import write_index


def test_the_index_counts_what_the_night_left_open(merchant: Any) -> None:
    """A high break and all breaks, as the result of the newest run has them."""
    one = merchant.payments("captured")[0]
    merchant.drop("orders.csv", merchant.order(one, amount="900000.00", currency="EUR"))
    merchant.night(workbooks=workbooks())
    with merchant.environment() as environment:
        ran = index_of(date(2026, 11, 20), environment=environment)
        missing = index_of(date(2026, 11, 19), environment=environment)

    (line,) = [one for one in ran if one.night.run_id]
    assert line.grave_breaks
    assert line.breaks is not None
    assert line.breaks >= line.grave_breaks
    assert line.night.workbook.endswith(".xlsx")
    assert [one.breaks for one in missing] == [None] * len(ran)
    assert {one.night.standing for one in missing} == {"missing"}


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


def test_a_night_writes_the_index_beside_its_workbook(merchant: Any) -> None:
    """Where several accounts are declared, a live night that ended leaves one page over all."""
    with merchant.environment() as environment:
        several = with_accounts(environment, count=3)
        folder = next(iter(several.settings.accounts.values())).reports
        folder.mkdir(parents=True, exist_ok=True)

        assert after(several) == [f"All accounts: {folder / 'nights-2026-11-20.xlsx'}"]
        assert (folder / "nights-2026-11-20.xlsx").exists()
        assert after(several, mode=Mode.DRY_RUN) == []
        assert after(with_accounts(environment, count=1)) == []


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
        "are kept: write it with `recon index FOLDER --business-date 2026-11-20`."
    )
