"""Whether the release of a NOT PROVEN night still counts, asked each time before money goes.

A release lifts the hold on refunds for as long as its two people may release; the gate, the
reports and `recon release` ask here.
"""

from datetime import date

from recon.config.approvers import has_left
from recon.instructions.approval import problem_of_people
from recon.steps.ground.environment import Environment
from recon.store import Connection
from recon.store.nights import runs
from recon.store.people import approval_rows


def held_nights(
    connection: Connection, account: tuple[str, str], *, environment: Environment
) -> dict[date, str]:
    """Business dates that hold refunds -> why their release counts no more, "" without one."""

    def problem_of(run_id: str) -> str:
        return release_ended(connection, run_id, environment=environment)

    return runs.not_proven(
        connection, merchant_id=account[0], account_id=account[1], problem_of=problem_of
    )


def release_ended(connection: Connection, run_id: str, *, environment: Environment) -> str:
    """Why what was said to release a run counts no more; "" while it does, or nothing was said."""
    words = approval_rows.release_of(connection, run_id)
    if words is None:
        return ""
    declared = environment.settings.approvers
    if words.second_by:
        both = (words.first_by, words.second_by)
        return problem_of_people(both, did="released", declared=declared)
    if has_left(words.first_by, declared=declared):
        return f"{words.first_by} released it, whom approvers.toml does not declare any more"
    return ""
