"""Sealed folders copied for an auditor: every byte as it lies there, and what is wrong with it.

A folder that is not as it was sealed is copied all the same; its faults are named.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from recon.archive.facts_files import whole_facts
from recon.archive.manifest import MANIFEST
from recon.archive.step_folder import Sealed
from recon.archive.storage import Storage, reachable
from recon.model.errors import ArchiveError, ConfigurationError
from recon.steps.care.evidence_folder import EvidenceFolder
from recon.steps.care.verify_folder import missing_steps
from recon.steps.ground.environment import Environment
from recon.steps.ground.let_go_nights import is_kept
from recon.steps.ground.night_folder import folder_of, is_attempt, storage_of, storages_of
from recon.steps.ground.sealed_night import sealed_night
from recon.store import Connection
from recon.store.nights import facts_rows, sign_off_rows
from recon.store.nights.let_go_rows import let_go_of
from recon.store.nights.runs import Run

UNREAD = "the folder was not copied whole"


@dataclass(frozen=True, slots=True)
class CopiedFolder:
    """A folder as it lies in the copy."""

    folder: str
    """Below the copy, as below the archive."""
    manifests: Mapping[str, str]
    """Step -> SHA-256 of its manifest, as it was copied and as the history binds it."""
    faults: tuple[str, ...]


def copied_night(
    connection: Connection, run: Run, *, into: EvidenceFolder, environment: Environment
) -> CopiedFolder:
    """Copy the folder of a run, and hold it against its manifests and those against the history."""
    faults: list[str] = []
    steps: list[Sealed] = []
    going = let_go_of(connection, run.run_id)
    is_signed = bool(sign_off_rows.signatures(connection, run.run_id))
    folder = folder_of(run)
    try:
        storage = storage_of(run, environment=environment)
        faults += missing_steps(connection, run, environment=environment)
        steps += sealed_night(connection, run, environment=environment).steps.values()
    except (ArchiveError, ConfigurationError) as error:
        faults.append(str(error))
    else:
        expected = {
            name: sha256
            for name, sha256 in _expected(steps).items()
            if going is None or is_kept(name.removeprefix(f"{folder}/"), is_signed=is_signed)
        }
        faults += copied(storage, folder=folder, expected=expected, into=into)
    faults += _copied_facts(connection, run, into=into, environment=environment)
    manifests = {step.manifest.about.step: step.sha256 for step in steps}
    return CopiedFolder(folder, manifests, tuple(faults))


def _copied_facts(
    connection: Connection, run: Run, *, into: EvidenceFolder, environment: Environment
) -> Iterator[str]:
    """Copy the rows of the night's files, each file once; what is wrong with them."""
    storages = storages_of(environment)
    for facts in facts_rows.of_night(connection, run):
        if into.has(facts.rows.path):
            continue
        try:
            content = whole_facts(storages(facts.inbox), facts.rows, doing=UNREAD)
        except (ArchiveError, ConfigurationError) as error:
            yield str(error)
        else:
            into.write(facts.rows.path, content)


def copied_close(sealed: Sealed, *, storage: Storage, into: EvidenceFolder) -> CopiedFolder:
    """Copy the folder of a closed month, and hold it against its manifest."""
    faults = copied(storage, folder=sealed.folder, expected=_expected([sealed]), into=into)
    return CopiedFolder(sealed.folder, {"close": sealed.sha256}, tuple(faults))


def copied(
    storage: Storage, *, folder: str, expected: Mapping[str, str], into: EvidenceFolder
) -> list[str]:
    """Copy every file below a folder; what is not as `expected` (name -> SHA-256) says."""
    faults: list[str] = []
    missing = set(expected)
    try:
        with reachable(storage, doing=UNREAD):
            for name in storage.names(folder):
                was_left = name not in expected and is_attempt(name.removeprefix(f"{folder}/"))
                content = storage.read(name)
                into.write(name, content)
                missing.discard(name)
                if name not in expected:
                    faults += [] if was_left else [f"{name}: nobody sealed it"]
                elif hashlib.sha256(content).hexdigest() != expected[name]:
                    faults.append(f"{name} is not the file that was sealed")
    except ArchiveError as error:
        faults.append(str(error))
    return faults + [f"{name} is gone from the archive" for name in sorted(missing)]


def _expected(steps: Iterable[Sealed]) -> dict[str, str]:
    """Name below the archive -> SHA-256, of every file that was sealed."""
    expected: dict[str, str] = {}
    for step in steps:
        expected[f"{step.folder}/{MANIFEST}"] = step.sha256
        expected |= {f"{step.folder}/{each.name}": each.sha256 for each in step.manifest.files}
    return expected
