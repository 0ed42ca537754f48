"""The answers that a night compares, written once without that anybody holds all of them.

As `answers_once.compared_once` says of all rows together, said of one stretch of order numbers
after another: what is compared of an order depends on its own rows alone.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial

import pandas as pd
import pyarrow as pa

from recon.archive.answers_once import (
    ANSWERS,
    PASSED_OVER,
    SHARED,
    NamedReplies,
    as_answers,
    compared_once,
)
from recon.archive.rows_file import sorted_rows
from recon.archive.schemas import SCHEMAS
from recon.proof.night_tables import table_of
from recon.steps.compare.stretches import ORDER_NO, is_in, stretches_of_answers
from recon.steps.ground.answer_files import read_part
from recon.steps.ground.environment import Environment
from recon.steps.ground.newest_answers import newest_of_files
from recon.steps.ground.night_folder import folder_of
from recon.steps.ground.sealed_night import SealedNight
from recon.store.nights import answer_parts
from recon.store.nights.answer_parts import AnswerPart
from recon.store.nights.runs import Run

ROWS_AT_ONCE = 250_000
"""Answers of a stretch."""


def parted_answers(
    run: Run, *, joined: pd.DataFrame, night: SealedNight, environment: Environment
) -> Iterator[tuple[str, pa.Table]]:
    """The tables `answers` and `passed_over`; only the first where no file of answers is sealed.

    Args:
        run: whose answers are compared.
        joined: GATEWAY_COLUMNS of other accounts that join them.
        night: its steps before the comparison.
        environment: where the archive is.

    Raises:
        ArchiveError: a file cannot be read, or is not as it was sealed.
    """
    with environment.store.reading() as connection:
        parts = answer_parts.of_run(connection, run.run_id)
    own = {_name(part, run=run): part for part in parts if part.phase in answer_parts.OWN_PHASES}
    own = {name: part for name, part in own.items() if part.answered}
    files = night.answer_files(night.steps)
    others = table_of(joined, name=ANSWERS)
    every = _numbers(night, files=files, own=own, environment=environment)
    rests, passed = [], []
    for stretch in stretches_of_answers(every, rows=ROWS_AT_ONCE):
        wanted = partial(is_in, stretch)
        named = [own[name] for name in stretch.answers if name in own]
        newest = newest_of_files(named, wanted=wanted, environment=environment, columns=SHARED)
        whole = pa.concat_tables([as_answers(newest), others.filter(wanted(others))])
        compared = sorted_rows(whole.unify_dictionaries(), schema=SCHEMAS[ANSWERS])
        given = [name for name in files[::-1] if name in stretch.answers]
        passed_over, rest = compared_once(compared, replies=night.replies(given), wanted=wanted)
        rests.append(rest)
        passed.append(passed_over)
    yield ANSWERS, _joined(rests, name=ANSWERS)
    if files:
        yield PASSED_OVER, _joined(passed, name=PASSED_OVER)


def _joined(tables: Iterable[pa.Table], *, name: str) -> pa.Table:
    return pa.concat_tables([SCHEMAS[name].columns.empty_table(), *tables]).unify_dictionaries()


def _name(part: AnswerPart, *, run: Run) -> str:
    """The file as the night's folder names it."""
    return part.path.removeprefix(f"{folder_of(run)}/")


def _numbers(
    night: SealedNight,
    *,
    files: Sequence[str],
    own: Mapping[str, AnswerPart],
    environment: Environment,
) -> Iterator[NamedReplies]:
    """The order numbers of all files, of those that are not sealed too."""
    columns = [ORDER_NO]
    yield from night.replies(files, columns=columns)
    for name, part in own.items():
        if name not in files:
            yield name, read_part(part, environment=environment, columns=columns)
