"""What proves a night, written to its folder at its end: totals, rules, decisions, the workbook."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path

import pyarrow as pa

from recon.archive.step_folder import Document, Part, Sealed
from recon.matching.bank.bank_frames import COUNTED
from recon.matching.bank.bookings import BANKED
from recon.matching.breaks.result import Reconciliation
from recon.proof.night_tables import totals_table
from recon.proof.second_engine import sql_files
from recon.steps.ground.environment import Environment
from recon.steps.ground.night_folder import (
    DECISIONS,
    PROOF,
    Terms,
    before,
    links,
    newest,
    packed_lines,
    rows_of,
    sealed_night,
    write,
)
from recon.store import Connection
from recon.store.money import instruction_sheet
from recon.store.nights import input_rows, runs
from recon.store.nights.runs import Run
from recon.store.people import resolution_rows

WORKBOOK = "workbook.xlsx"
"""The workbook, as it was written that night."""
RULES = "rules.json"
"""The rules that judged, with every default."""
APPROVED = ("instruction_id", "kind", "order_no", "currency", "amount", "state", "approved_by")


def write_proof(
    run: Run,
    *,
    result: Reconciliation,
    workbook: Path,
    sheets: pa.Table,
    environment: Environment,
) -> Sealed:
    """Write the step `proof`; whoever keeps the workbook binds it. `sheets` were read back from it.

    Raises:
        ArchiveError: the archive cannot be written; money, result and workbook are kept.
    """
    with environment.store.reading() as connection:
        bound = newest(links(connection, run.run_id))
        inputs = input_rows.load(connection, run.run_id)
        decided = decisions_of(connection, run)
        decisions = [json.dumps(each, sort_keys=True, default=str) + "\n" for each in decided]
        night = sealed_night(connection, run, environment=environment)
        kept = runs.text_of(connection, result.rules_digest)
    # The rules that judged, whatever is declared now; none where nobody has them any more.
    declared, rules = environment.settings.rules, list[Document]()
    if declared.digest == result.rules_digest:
        rules.append(Document(RULES, json.dumps(declared.document, indent=2).encode()))
    elif runs.digest_of_text(kept) == result.rules_digest:
        rules.append(Document(RULES, json.dumps(json.loads(kept), indent=2).encode()))
    # The statements that prove the night name the files where they lie in its folder.
    texts = sql_files(moved=night.moved, banks=night.has(COUNTED), books=night.has(BANKED))
    parts: list[Part] = [
        *rows_of([("totals", totals_table(result.control_totals)), ("sheets", sheets)]),
        *rules,
        Document(DECISIONS, packed_lines("".join(decisions))),
        Document(WORKBOOK, workbook.read_bytes()),
        *(Document(name, text.encode()) for name, text in texts.items()),
    ]
    return write(
        run,
        PROOF,
        parts=parts,
        terms=Terms(inputs.previous_run_id if inputs else "", result.rules_digest),
        after=before(PROOF, bound=bound),
        environment=environment,
    )


def decisions_of(connection: Connection, run: Run) -> Iterator[Mapping[str, object]]:
    """What people decided that this night shows, each with its kind."""
    if run.predecessor:
        yield {"decision": "night before", "word": run.predecessor}
    for row in instruction_sheet.sheet_frame(connection, run).to_dict("records"):
        if row["approved_by"]:
            yield {"decision": "approval", **{str(name): row[name] for name in APPROVED}}
    answers = resolution_rows.kept_answers(connection, run.account)
    for break_id, kept in sorted(answers.items()):
        yield {"decision": "answer", "break_id": break_id, **asdict(kept)}
