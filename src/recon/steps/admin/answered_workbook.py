"""Write a night's workbook with an owner and a comment filled into the input cells, for import.

It stores nothing: answers count only after `recon import-resolutions`, as those of people do.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from recon.model.errors import UsageError
from recon.model.resolutions import (
    COMMENT_CHARACTERS_MAX,
    OWNER_CHARACTERS_MAX,
    BreakAnswer,
    StoredAnswer,
)
from recon.steps.approvals.sign_off import not_looked_after
from recon.steps.night.report import Workbooks, figures_of
from recon.steps.runtime.environment import Environment
from recon.steps.runtime.night_folder import StoredResult
from recon.store.nights import runs

BREAKS_DISPLAYED_MAX = 3


@dataclass(frozen=True, slots=True)
class AnswerToEnter:
    """The owner and the comment to enter, and for which breaks."""

    owner: str
    comment: str
    break_ids: Sequence[str] = ()
    """If empty: every break of severity high or above without an owner or a comment."""


def answered_workbook(
    run_id: str,
    to_enter: AnswerToEnter,
    *,
    path: Path | None,
    environment: Environment,
    workbooks: Workbooks,
) -> tuple[Path, int]:
    """Write the workbook; return its path and the number of breaks answered.

    Raises:
        UsageError: nothing is left to answer, a break is not open in that night, or the answer is
            blank or too long; nothing was written.
    """
    _refuse_wrong(to_enter)
    with environment.store.reading() as connection:
        run = runs.get(connection, run_id)
        result = StoredResult(connection, run_id, environment).whole()
    if result is None:
        msg = f"run {run_id} has no result, so no break to answer; nothing was written"
        raise UsageError(msg)
    figures = figures_of(run, result=result, environment=environment)
    known = {str(break_id) for break_id in result.breaks["break_id"]}
    if strange := [each for each in to_enter.break_ids if each not in known]:
        named = ", ".join(strange[:BREAKS_DISPLAYED_MAX])
        msg = f"{named} is no open break of {run.business_date}; nothing was written"
        raise UsageError(msg)
    left = not_looked_after(result.breaks, saved=figures.answers)
    chosen = to_enter.break_ids or [str(row["break_id"]) for row in left]
    if not chosen:
        msg = (
            f"every break of severity high or above of {run.business_date} has an owner and a "
            "comment; nothing was written: --break names another one"
        )
        raise UsageError(msg)
    given = BreakAnswer(owner=to_enter.owner, comment=to_enter.comment)
    answers = {each: _answer(figures.answers.get(each), given) for each in chosen}
    name = f"answers-{run.merchant_id}-{run.account_id}-{run.business_date}.xlsx"
    account = environment.settings.account(run.merchant_id, account_id=run.account_id)
    filled = replace(figures, answers={**figures.answers, **answers})
    return workbooks.write(filled, path or account.reports / name), len(answers)


def _answer(known: StoredAnswer | None, given: BreakAnswer) -> StoredAnswer:
    """Set owner and comment in the previous answer; its version stays, to detect stale answers."""
    if known is None:
        return StoredAnswer(given, version=0, by="", waits=False)
    return replace(known, answer=replace(known.answer, owner=given.owner, comment=given.comment))


def _refuse_wrong(to_enter: AnswerToEnter) -> None:
    for name, text, longest in (
        ("owner", to_enter.owner, OWNER_CHARACTERS_MAX),
        ("comment", to_enter.comment, COMMENT_CHARACTERS_MAX),
    ):
        if not 0 < len(text.strip()) <= longest:
            msg = f"--{name} is a text of at most {longest} characters; nothing was written"
            raise UsageError(msg)
