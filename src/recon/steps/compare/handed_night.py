"""A night as another process finds it: where its folder lies and what its steps must say.

No row and no secret travels: a place, the rules, and the hashes by which every byte is known.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from recon.archive.step_folder import Sealed, sealed_step
from recon.archive.storage import open_storage, reachable
from recon.config.night_archive import ArchiveSettings
from recon.config.rules import Rules
from recon.model.errors import ArchiveBrokenError
from recon.steps.ground.environment import Environment, machine_patience
from recon.steps.ground.night_folder import UNREAD, SealedNight, archive_of_account, sealed_night
from recon.store.nights.runs import Run


@dataclass(frozen=True, slots=True)
class HandedNight:
    """Where another process finds what it is to compare."""

    run_id: str
    as_of: datetime
    rules_as_json: str
    archive: ArchiveSettings
    """Of its keys only the names of their variables."""
    steps: tuple[tuple[str, str], ...]
    """Folder and hash of each manifest, in the order of the night."""

    @property
    def rules(self) -> Rules:
        """By which it is compared."""
        return Rules.of(json.loads(self.rules_as_json), source=f"the rules of run {self.run_id}")


def handed_night(run: Run, *, written: Iterable[Sealed], environment: Environment) -> HandedNight:
    """What another process is told of a night; `written` are steps that no link binds yet."""
    account, rules = run.account, environment.settings.rules
    archive = archive_of_account(account, environment=environment)
    if not archive.is_remote:
        archive = archive.model_copy(update={"path": str(Path(archive.path).absolute())})
    with environment.store.reading() as connection:
        night = sealed_night(connection, run, environment=environment)
    steps = {**night.steps, **{each.manifest.about.step: each for each in written}}
    return HandedNight(
        run_id=run.run_id,
        as_of=run.as_of,
        rules_as_json=json.dumps(rules.document, sort_keys=True),
        archive=archive,
        steps=tuple((sealed.folder, sealed.sha256) for sealed in steps.values()),
    )


def keys_needed(environment: Environment) -> frozenset[str]:
    """The variables without which another process does not reach the archive."""
    archive = environment.settings.archive
    return frozenset({archive.access_key_env, archive.secret_key_env} - {""})


def opened_night(night: HandedNight, *, variables: Mapping[str, str]) -> SealedNight:
    """The night's folder as it was when the night was handed out.

    Raises:
        ArchiveError: the archive cannot be reached, or a step is not the one of then.
    """
    storage = open_storage(night.archive, variables=variables, patience=machine_patience())
    steps: dict[str, Sealed] = {}
    with reachable(storage, doing=UNREAD):
        for folder, sha256 in night.steps:
            sealed = sealed_step(storage, folder=folder)
            if sealed is None or sealed.sha256 != sha256:
                msg = f"{folder} of the archive {storage.shown} is not what the night wrote"
                raise ArchiveBrokenError(msg)
            steps[sealed.manifest.about.step] = sealed
    return SealedNight(night.run_id, storage, steps)
