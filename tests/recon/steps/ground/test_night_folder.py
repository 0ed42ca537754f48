import threading
from pathlib import Path

import pytest

from recon.archive.schemas import empty
from recon.model.errors import ConfigurationError, NightHeldError
from recon.model.nights import Mode
from recon.steps.ground.night_folder import (
    INPUTS,
    Terms,
    before,
    bind,
    folder_of,
    links,
    rows_of,
    storage_at,
    write,
)
from recon.steps.night import whole_night as night
from recon.store.nights import runs
from tests.recon.steps.conftest import ACCOUNT, MERCHANT, Merchant


def test_a_manifest_is_bound_once_however_often_its_step_is_done(merchant: Merchant) -> None:
    """A step that is done again in the same run adds no second link, and its files stay."""
    with (
        merchant.environment() as environment,
        night.hold(merchant.request, environment=environment) as run_id,
    ):
        with environment.store.reading() as connection:
            run = runs.get(connection, run_id)
        for _ in range(2):
            parts = [*rows_of([("universe", empty("universe"))])]
            sealed = write(
                run, INPUTS, parts=parts, terms=Terms("", "5"), after={}, environment=environment
            )
            with environment.store.writing() as connection:
                bind(connection, run, sealed=[sealed], environment=environment)
        with environment.store.reading() as connection:
            bound = links(connection, run_id)

        assert [(link.step, link.sha256) for link in bound] == [(INPUTS, sealed.sha256)]
        assert bound[0].folder == f"{folder_of(run)}/inputs"


def test_a_step_names_only_those_before_it() -> None:
    """A step that is done again does not come to hang on those that came after it."""
    bound = {"inputs": "1", "compared": "2", "results": "3", "proof": "4"}

    assert before("inputs", bound=bound) == {}
    assert before("results", bound=bound) == {"inputs": "1", "compared": "2"}


def test_two_nights_of_one_account_never_write_one_folder(merchant: Merchant) -> None:
    """The second is refused while the first works; each run has a folder of its own."""
    with merchant.environment() as environment:
        with night.hold(merchant.request, environment=environment):
            refused: list[BaseException] = []

            def second() -> None:
                try:
                    merchant.night()
                except NightHeldError as error:
                    refused.append(error)

            other = threading.Thread(target=second)
            other.start()
            other.join()
        assert len(refused) == 1
        storage = storage_at((MERCHANT, ACCOUNT), environment=environment)
        assert storage.names("nights") == []
    merchant.night(mode=Mode.DRY_RUN)
    merchant.night(mode=Mode.DRY_RUN)
    assert len(storage.folders(f"nights/{MERCHANT}/{ACCOUNT}/2026-11-20")) == 2


def test_an_archive_that_is_named_holds_the_nights_and_a_missing_key_is_told(
    merchant: Merchant, tmp_path: Path
) -> None:
    """archive.toml says where; nothing lies beside the database then."""
    file = merchant.folder / "config" / "archive.toml"
    file.write_text(f'[archive]\npath = "{tmp_path / "elsewhere"}"\n')
    merchant.night(mode=Mode.DRY_RUN)
    assert len([*(tmp_path / "elsewhere").glob(f"nights/{MERCHANT}/{ACCOUNT}/2026-11-20/*")]) == 1

    keys = 'access_key_env = "NO_SUCH_ID"\nsecret_key_env = "NO_SUCH_SECRET"\n'
    file.write_text(f'[archive]\npath = "s3://books/nights"\n{keys}')
    with pytest.raises(ConfigurationError, match="NO_SUCH_ID"):
        merchant.night(mode=Mode.DRY_RUN)
