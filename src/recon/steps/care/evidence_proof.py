"""By which totals and rules a night of evidence is proven: as sealed, never as a table says it."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from recon.model.errors import ArchiveError, ConfigurationError
from recon.model.words import ControlTotal
from recon.steps.ground.environment import Environment
from recon.steps.ground.night_folder import PROOF
from recon.steps.ground.sealed_night import sealed_night
from recon.steps.ground.sealed_totals import sealed_totals
from recon.steps.night.sealed_proof import RULES
from recon.store import Connection
from recon.store.nights import results, rules_rows, runs
from recon.store.nights.runs import Run


@dataclass(frozen=True, slots=True)
class Proven:
    """What an auditor is shown of a night's proof, and what cannot be shown."""

    totals: Sequence[ControlTotal]
    rules_digest: str
    rules: object
    """The document that has the digest; None where nobody has it any more."""
    faults: tuple[str, ...]


def proven_by(connection: Connection, run: Run, *, environment: Environment) -> Proven:
    """The totals in a run's folder, and the rules that have the digest which the history binds."""
    faults: list[str] = []
    totals = None
    try:
        totals = sealed_totals(connection, run, environment=environment)
    except (ArchiveError, ConfigurationError) as error:
        faults.append(f"run {run.run_id}: none of its control totals is shown: {error}")
    else:
        if totals is None and results.load_totals(connection, run.run_id):
            faults.append(
                f"run {run.run_id}: none of its control totals is shown: no folder has them"
            )
    digest = runs.digests_of(connection, run.run_id)["rules_digest"]
    rules = _rules(connection, run, digest=digest, environment=environment)
    if digest and rules is None:
        faults.append(
            f"run {run.run_id}: neither its folder nor the database has its rules {digest}"
        )
    return Proven(totals or (), digest, rules, tuple(faults))


def _rules(connection: Connection, run: Run, *, digest: str, environment: Environment) -> object:
    """The document with a digest, of the folder or of the database: the digest tells it."""
    texts = [rules_rows.text_of(connection, digest)]
    try:
        night = sealed_night(connection, run, environment=environment)
        texts += [night.as_sealed(f"{PROOF}/{RULES}").decode()] if PROOF in night.steps else []
    except (ArchiveError, ConfigurationError, UnicodeDecodeError):
        pass  # a fault of the folder, which whoever copies it names
    return next(
        (json.loads(text) for text in texts if rules_rows.digest_of_text(text) == digest), None
    )
