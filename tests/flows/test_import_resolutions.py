"""Which files the flow may open."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from flows.import_resolutions import _publish, import_resolutions, returned_path
from recon.model.errors import UsageError


def settings_of(reports: Path) -> Any:
    """Settings with one account."""
    return SimpleNamespace(accounts={"1/2": SimpleNamespace(reports=reports)})


def test_a_file_outside_the_reports_folders_is_never_opened(tmp_path: Path) -> None:
    """Whoever may start a flow must not have any file of the machine read."""
    (tmp_path / "reports").mkdir()
    outside = tmp_path / "reports" / ".." / "secret.xlsx"

    with pytest.raises(UsageError, match="not in a reports folder"):
        returned_path(outside, settings=settings_of(tmp_path / "reports"))


def test_a_file_in_a_reports_folder_is_taken(tmp_path: Path) -> None:
    """The workbook lies where it was written, or below."""
    wanted = tmp_path / "reports" / "answered.xlsx"

    assert returned_path(wanted, settings=settings_of(tmp_path / "reports")) == wanted.resolve()


def test_what_a_returned_workbook_says_is_text_on_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its name and the cells that were refused make no link, image, tag or further cell."""
    pages: list[tuple[str, str]] = []
    monkeypatch.setattr(
        "flows.import_resolutions.create_markdown_artifact",
        lambda markdown, *, key, description: pages.append((markdown, f"{key}: {description}")),
    )
    refused = SimpleNamespace(cell="Breaks!R7", reason="'![i](http:evil)<b>|' is no resolution")
    done: Any = SimpleNamespace(name="[x](http:evil).xlsx", refusals=[refused])

    _publish(done, sentence=f"{done.name}: 1 refused")

    ((page, described),) = pages
    assert page.splitlines() == [
        r"# \[x\](http:evil).xlsx",
        "",
        r"\[x\](http:evil).xlsx: 1 refused",
        "",
        "| cell | why it was not taken |",
        "|---|---|",
        r"| Breaks!R7 | '!\[i\](http:evil)\<b>\|' is no resolution |",
    ]
    assert described == r"answers-taken: \[x\](http:evil).xlsx: 1 refused"


def test_the_flow_is_never_repeated_by_itself() -> None:
    """Answers are taken once; Prefect does not try again."""
    assert import_resolutions.retries == 0
