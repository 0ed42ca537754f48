"""The copy of a workbook that says who signed it."""

import hashlib
import io
import zipfile
from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from recon.model.errors import OutputError
from recon.model.figures import NightFigures
from recon.model.resolutions import BreakAnswer, KeptAnswer
from recon.store.nights.sign_off_rows import Signature
from reports.reading.signed_copy import PAGES, write_signed_copy
from tests.reports.drawn_sheets import list_on, words_on

ZONE = "Europe/Copenhagen"


def names_under(path: Path, *people: str) -> tuple[Signature, ...]:
    """Signatures of these people under the file as it is."""
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    at = datetime(2026, 11, 21, 9, 5, tzinfo=UTC)
    return tuple(
        Signature(role, by, authenticated=True, at=at, workbook_sha256=digest)
        for role, by in zip(("reviewer", "approver"), people, strict=False)
    )


def page_one(path: Path) -> set[str]:
    """Every text of the Summary."""
    return {*words_on(path.read_bytes(), "Summary")}


def test_the_copy_says_who_signed_which_file_and_when(workbook: Path) -> None:
    """Names as text, in the report's zone, with the SHA-256 that they signed."""
    signatures = names_under(workbook, "Dan <Orr> & Co", "=Anna")
    copy = write_signed_copy(workbook, signatures=signatures, answers={}, timezone=ZONE)

    assert copy.name == "night-approved.xlsx"
    assert "not signed" in page_one(workbook)
    assert "not signed" not in page_one(copy)
    wanted = {"Dan <Orr> & Co", "=Anna", "2026-11-21 10:05", signatures[0].workbook_sha256}
    assert wanted <= page_one(copy)


def test_a_review_alone_leaves_the_approver_open(workbook: Path) -> None:
    """One name is not two."""
    copy = write_signed_copy(
        workbook, signatures=names_under(workbook, "Dan Orr"), answers={}, timezone=ZONE
    )

    assert copy.name == "night-reviewed.xlsx"
    assert {"Dan Orr", "not signed"} <= page_one(copy)


def test_everything_but_page_one_is_the_signed_file(workbook: Path) -> None:
    """Part by part the same bytes."""
    copy = write_signed_copy(
        workbook, signatures=names_under(workbook, "Dan Orr"), answers={}, timezone=ZONE
    )
    signed, stamped = (zipfile.ZipFile(io.BytesIO(path.read_bytes())) for path in (workbook, copy))
    differing = [name for name in signed.namelist() if signed.read(name) != stamped.read(name)]

    assert stamped.namelist() == signed.namelist()
    assert differing == [PAGES["Summary"]]


def test_another_file_is_never_given_the_signatures(workbook: Path) -> None:
    """A workbook that was changed after it was signed gets no signed copy."""
    signatures = names_under(workbook, "Dan Orr")
    workbook.write_bytes(workbook.read_bytes() + b" ")

    with pytest.raises(OutputError, match=r"not the file that was signed.*signature is kept"):
        write_signed_copy(workbook, signatures=signatures, answers={}, timezone=ZONE)


def test_the_copy_holds_the_answers_that_it_was_signed_on(
    workbook: Path, build: Callable[..., NightFigures]
) -> None:
    """Who opens the approved copy next year reads what people had answered, on paper too."""
    key = str(build().breaks["break_id"].iloc[0])
    answer = BreakAnswer("Refunded", "Jo <Hill>", "=seen & done", date(2026, 11, 21))
    copy = write_signed_copy(
        workbook,
        signatures=names_under(workbook, "Dan Orr"),
        answers={
            key: KeptAnswer(answer, 1, "Jo Hill", waits=False),
            "gone": KeptAnswer(answer, 1, "X", waits=False),
        },
        timezone=ZONE,
    )
    titles = ("Resolution", "Owner", "Comment", "Resolved on", "Answered by")
    rows = list_on(copy.read_bytes(), "Breaks", "Key", "Owner")
    told = {row["Key"].partition(".")[0]: [row[title] for title in titles] for row in rows}

    assert {each for each, cells in told.items() if any(cells)} == {key}
    assert told[key] == ["Refunded", "Jo <Hill>", "=seen & done", "2026-11-21", "Jo Hill"]
