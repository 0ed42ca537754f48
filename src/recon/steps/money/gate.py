"""The gate before money, from what the store holds: totals, the history chain, unproven nights.

A failed total or a broken chain closes the gate for everything; an unproven earlier night, or books
that could not be read, hold refunds and payouts, while captures and cancels go on (authorisations
lapse).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from recon.model.words import ControlTotal, InstructionKind
from recon.steps.files.never_read import WHOLE_FILE
from recon.steps.ground.desk_memory import lost_word
from recon.steps.ground.endorsed import endorsed
from recon.steps.ground.environment import Environment
from recon.steps.ground.kept_answers import unbound
from recon.steps.ground.night_folder import storages_of
from recon.steps.ground.releases import release_ended
from recon.steps.money.restore import resolve_pending, restored_since
from recon.store import Connection
from recon.store.database import history, record
from recon.store.database.bound_tables import BEFORE_MONEY, INSTRUCTION
from recon.store.database.record import changed_in
from recon.store.database.verified_head import NOTHING, keep_verified, verified
from recon.store.money import bound_rows
from recon.store.money.endorsement_rows import Endorsed
from recon.store.nights import (
    answer_parts,
    bound_actions,
    facts_rows,
    ledger_rows,
    order_facts,
    proofs,
    runs,
)
from recon.store.nights.answer_parts import BASELINE
from recon.store.nights.runs import Run

HELD_KINDS = frozenset({InstructionKind.REFUND, InstructionKind.PAYOUT})


@dataclass(frozen=True, slots=True)
class Gate:
    """What the gate says tonight."""

    closed_because: str
    """Not empty: nothing may be sent."""
    held_because: str
    """Not empty: refunds and payouts wait."""

    def hold_on(self, kind: InstructionKind) -> str:
        """Why this kind of instruction waits tonight; "" when it may go."""
        return self.closed_because or (self.held_because if kind in HELD_KINDS else "")


def judge(
    *,
    totals: Sequence[ControlTotal],
    chain_problem: str,
    unproven_nights: Mapping[date, str],
    books_unread: str = "",
) -> Gate:
    """The gate from its proofs.

    `unproven_nights` has beside each date why its release does not count; `books_unread` says why
    the ledger was not read.
    """
    failed = [total for total in totals if not total.passed]
    closed = ""
    if chain_problem:
        closed = f"the history does not hold: {chain_problem}"
    elif failed:
        listing = "; ".join(
            f"{total.id} {total.name} {total.account_id}: {total.left} is not {total.right}"
            for total in failed[:3]
        )
        closed = f"a control total before money does not tie: {listing}"
    held = []
    if unproven_nights:
        dates = ", ".join(
            f"{day} ({why})" if why else str(day) for day, why in unproven_nights.items()
        )
        held.append(
            f"the night of {dates} is NOT PROVEN; refunds wait until it is run again and proven, "
            "or two people release it (`recon release`)"
        )
    if books_unread:
        held.append(
            f"the ledger was not read ({books_unread}); refunds and payouts wait until it is, "
            "captures and cancels go on"
        )
    return Gate(closed, "; ".join(held))


def gate_of(run: Run, *, environment: Environment) -> Gate:
    """What the gate says of one run, before it sends."""
    foreign = restored_since(run, environment=environment)
    if not foreign:
        resolve_pending(run, environment=environment)
    words = endorsed(environment)
    lost = lost_word(environment.desk, store=environment.store)
    with environment.store.reading() as connection:
        asked, _ = answer_parts.counted(connection, run.run_id, phase=BASELINE)
        problem = _history_problem(connection, run, environment=environment) or foreign or lost
        unproven = runs.not_proven(
            connection,
            merchant_id=run.merchant_id,
            account_id=run.account_id,
            problem_of=lambda it: (
                words.release_problem(connection, it)
                or release_ended(connection, it, environment=environment)
            ),
        )
        problem = problem or unbound(connection, run, environment=environment)
        problem = problem or _unendorsed(connection, words, environment=environment)
        # Files are opened where the history bound that they are these, and not before.
        stored = 0 if problem else _stored(connection, run, environment=environment)
        totals = proofs.before_money(
            connection, run, in_files=stored, universe=asked, phase=BASELINE
        )
        unread = ledger_rows.unread(connection, run.run_id, whole_file=WHOLE_FILE)
    return judge(
        totals=totals, chain_problem=problem, unproven_nights=unproven, books_unread=unread
    )


def _stored(connection: Connection, run: Run, *, environment: Environment) -> int:
    """Rows of the night's order and settlement files, counted by their files of facts."""
    files = facts_rows.of_night(connection, run)
    return order_facts.stored_rows(files, storages=storages_of(environment))


def _unendorsed(connection: Connection, words: Endorsed, *, environment: Environment) -> str:
    """An approval, or the end of a stop, for which the desk never signed."""
    return (
        words.start_problem(connection)
        or next(words.row_problems(connection, at=environment.clock()), "")
        or words.taken_away(connection)
    )


def _history_problem(connection: Connection, run: Run, *, environment: Environment) -> str:
    """The chain closes, and nothing was changed past it.

    Only what is new since the account's last night is walked; `recon verify` walks all of it.
    """
    folder = environment.settings.account(run.merchant_id, account_id=run.account_id).reports
    before = verified(folder)
    if not history.has_link(connection, before):
        before = NOTHING
    head, problem = history.verify(connection, after=before)
    if not problem:
        keep_verified(folder, head)
    return (
        problem
        or next(record.strayed(connection, INSTRUCTION), "")
        or next(bound_rows.back_again(connection), "")
        or next(record.changed(connection, INSTRUCTION, where=bound_rows.MAY_LEAVE), "")
        or next(changed_in(connection, BEFORE_MONEY), "")
        or next(bound_actions.changed_actions(connection, run), "")
        or next(facts_rows.changed(connection), "")
    )
