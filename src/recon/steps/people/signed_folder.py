"""The folder of one signature: who signed which file, on which answers, and the copy that says so.

It is written under its name before the transaction of the signature, which binds its manifest. A
folder that no signature binds is nobody's: the next attempt moves it aside.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Protocol

from recon.archive.step_folder import Document, Sealed
from recon.model.errors import UsageError
from recon.model.resolutions import KeptAnswer
from recon.steps.ground.environment import Environment
from recon.steps.ground.night_folder import SIGNED, STEPS, Terms, links, newest, write
from recon.store.nights import input_rows, runs
from recon.store.nights.runs import Run
from recon.store.nights.sign_off_rows import Signature

ANSWERS, SIGNATURES, WORKBOOK = "answers.jsonl", "signatures.json", "workbook.xlsx"


@dataclass(frozen=True, slots=True)
class NightToSign:
    """What somebody wants to put their name under."""

    run_id: str
    role: str
    """Reviewer or approver."""
    seen: str
    """SHA-256 of the file that the person looked at, or its first DIGITS_READ."""


class SignedCopy(Protocol):
    """The workbook with its names and answers; `reports` provides it."""

    def __call__(
        self,
        content: bytes,
        *,
        signatures: Sequence[Signature],
        answers: Mapping[str, KeptAnswer],
        timezone: str,
    ) -> bytes:
        """The bytes of the copy."""


def write_signature(
    run: Run,
    *,
    signatures: Sequence[Signature],
    answers: Mapping[str, KeptAnswer],
    copy: SignedCopy,
    environment: Environment,
) -> Sealed:
    """Write the folder of the last of these signatures; it counts for nothing yet.

    Args:
        run: whose workbook is signed.
        signatures: those that stand under it, the new one last.
        answers: to its breaks, by break key.
        copy: draws the signed copy.
        environment: of the desk.

    Raises:
        ArchiveError: the archive cannot be written; nothing that was sealed is changed.
        OutputError: no signed copy can be made of the workbook.
        UsageError: the file changed while it was read.
    """
    signature, path = signatures[-1], Path(run.workbook)
    content = path.read_bytes()
    if hashlib.sha256(content).hexdigest() != signature.workbook_sha256:
        msg = f"{path} was changed while it was signed: look at it, then sign again"
        raise UsageError(msg)
    zone = environment.settings.rules.calendar.timezone
    stamped = copy(content, signatures=signatures, answers=answers, timezone=zone)
    with environment.store.reading() as connection:
        bound = newest(links(connection, run.run_id))
        inputs = input_rows.load(connection, run.run_id)
        rules = runs.digests_of(connection, run.run_id)["rules_digest"]
    return write(
        run,
        f"{SIGNED}{signature.role}",
        parts=[
            Document(ANSWERS, _lines(answers).encode()),
            Document(SIGNATURES, _names(signatures).encode()),
            Document(WORKBOOK, stamped),
        ],
        terms=Terms(inputs.previous_run_id if inputs else "", rules),
        after={step: bound[step] for step in STEPS if step in bound},
        environment=environment,
    )


def _lines(answers: Mapping[str, KeptAnswer]) -> str:
    rows = ({"break_id": key, **asdict(kept)} for key, kept in sorted(answers.items()))
    return "".join(json.dumps(row, sort_keys=True, default=str) + "\n" for row in rows)


def _names(signatures: Sequence[Signature]) -> str:
    names = [{**asdict(each), "at": each.at.isoformat()} for each in signatures]
    return json.dumps(names, indent=2, sort_keys=True) + "\n"
