"""What the forms of people show and take, what they leave behind, and what they must not."""

import json
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import SecretStr

from flows import people
from flows.people import DOUBTS_DISPLAYED_MAX, returned_path
from recon.instructions.approval import list_of
from recon.model.errors import UsageError
from recon.model.figures import Attention
from recon.model.nights import Mode
from recon.model.terms import InstructionKind
from recon.steps.approvals.sign_off import Night
from recon.steps.approvals.verdicts import STATES
from recon.store.nights.runs import Run
from recon.store.nights.sign_off_rows import ROLES
from tests.flows.flow_in_process import prefect_of
from tests.recon.instructions.sample_instructions import INSTRUCTION
from tests.recon.steps.approvals.test_returned_answers import (
    Returned,
    newest_workbook,
    wrong_amounts,
)
from tests.recon.steps.conftest import begun, begun_once, database_url, merchant, profile

__all__ = ["begun", "begun_once", "database_url", "merchant", "profile"]
"""A merchant on loopback, as the steps' tests have it."""

CODE = "918273645546372819"
"""Longer than a phone's: in megabytes of ids and instants six digits stand by chance."""
OWN = {"merchant_id": "100042", "account_id": "100042001", "month": "2026-11"}
FORMS = {
    "approve": ("decision", "show", ("approve", "reject", "take_back")),
    "resolve": ("verdict", "show", (*STATES, "take_back")),
    "sign_off": ("sign_as", "show", (*ROLES, "take_back")),
    "close": ("act", "prepare", (*ROLES, "reopen")),
    "stop_sending": ("turn", "show", ("stop",)),
    "allow_sending": ("turn", "show", ("allow", "take_back")),
    "import_resolutions": ("answers", "list", ("take",)),
}
"""Form -> the field that says what, its word for only looking, its other words."""


@pytest.mark.parametrize("name", FORMS)
def test_a_form_starts_by_only_looking(name):
    form = getattr(people, name)
    chooses, looks, offered = FORMS[name]
    fields = form.parameters.model_dump()["properties"]
    words = form.parameters.definitions[fields[chooses]["$ref"].rpartition("/")[2]]["enum"]

    assert (form.retries, form.persist_result) == (0, False)
    assert fields[chooses]["default"] == looks
    assert sorted(words) == sorted((looks, *offered))
    assert all(field["description"] for field in fields.values())
    # Prefect's page names a field by its title alone, and leaves one without a title unnamed.
    assert {field: of.get("title") for field, of in fields.items()} == {
        each: each for each in fields
    }


def said(server, form, **given):
    """Name and sentence of the last state of a run of a form."""
    with prefect_of(server):
        last: Any = getattr(people, form)(**given, return_state=True)
    return last.name, last.message


@pytest.mark.flow
@pytest.mark.usefixtures("people")
@pytest.mark.parametrize(
    ("form", "given", "name", "words"),
    [
        ("approve", {}, "Shown", "Waits: 0 instructions."),
        ("resolve", {}, "Shown", "0 in doubt."),
        ("resolve", {"verdict": "applied", "name": "anna"}, "Refused", "instruction: is missing"),
        ("approve", {"decision": "approve", "list_digest": "0" * 16}, "Refused", "say who you are"),
        ("close", {"act": "reviewer", "name": "anna"}, "Refused", "month: is missing"),
        ("import_resolutions", {"workbook": "a.xlsx"}, "Refused", "a.xlsx is not in"),
        (
            "close",
            {"act": "reopen", **OWN, "name": "anna", "reason": "a corrected file"},
            "Refused",
            "no declared account is 100042/100042001; declared: none",
        ),
        (
            "resolve",
            {
                "verdict": "applied",
                "instruction": "i-1",
                "evidence": "seen in the portal",
                "name": "anna",
                "code": SecretStr("918273"),
            },
            "Refused",
            "the code of anna is not right; nothing was changed",
        ),
    ],
)
def test_looking_and_refusals_are_answers(server, caplog, form, given, name, words):
    ended, sentence = said(server, form, **given)

    assert ended == name
    assert sentence.startswith(words)
    assert sentence in caplog.text
    assert [word for word in ("Traceback", "exception") if word in caplog.text] == []


@pytest.mark.flow
def test_answers_are_listed_beside_their_breaks_before_they_are_taken(server, begun, monkeypatch):
    merchant = begun(wrong_amounts)
    for name, value in merchant.variables.items():
        monkeypatch.setenv(name, value)
    back = Returned(newest_workbook(merchant))
    back.answer("Order corrected")
    which = {"workbook": back.save("answered.xlsx").name}

    listed = said(server, "import_resolutions", **which)
    taken = said(server, "import_resolutions", answers="take", name="jo", **which)
    again = said(server, "import_resolutions", **which)

    assert listed == (
        "Shown",
        "answered.xlsx: 1 answers to take, 0 unchanged, 2 without an answer.",
    )
    assert taken == ("Taken", "answered.xlsx: 1 answers taken, 0 unchanged, 2 without an answer.")
    assert again == ("Shown", "answered.xlsx was imported before; nothing was done.")


@pytest.mark.flow
@pytest.mark.usefixtures("people")
def test_one_person_stops_and_one_alone_does_not_allow(server):
    assert said(server, "stop_sending") == ("Shown", "Money may be sent.")
    assert "reason: is missing" in said(server, "stop_sending", turn="stop", name="anna")[1]
    stopped = {"turn": "stop", "name": "anna", "reason": "the key leaked"}
    assert said(server, "stop_sending", **stopped)[0] == "Stopped"
    shown = said(server, "stop_sending")[1]
    assert shown.startswith("sending was stopped by anna")
    assert "the key leaked" in shown
    code = SecretStr("918273")
    again = said(server, "allow_sending", turn="allow", name="anna", reason="new key", code=code)
    assert "not right" in again[1]
    assert said(server, "stop_sending")[1] == shown


@pytest.mark.flow
@pytest.mark.usefixtures("people")
def test_a_code_given_in_the_form_is_kept_nowhere(server):
    from prefect.client.orchestration import SyncPrefectClient
    from prefect.client.schemas.sorting import FlowRunSort

    given = {"decision": "approve", "list_digest": "0" * 16, "name": "anna"}
    sentence = said(server, "approve", **given, code=SecretStr(CODE))[1]
    with SyncPrefectClient(server.api_url, auth_string=server.auth) as client:
        # What other tests left scheduled comes before what has started.
        runs = client.read_flow_runs(sort=FlowRunSort.START_TIME_DESC)
        run = next(run for run in runs if run.start_time is not None)
    kept = [path.read_bytes() for path in server.home.rglob("*") if path.is_file()]

    assert "not right" in sentence
    assert run.name.startswith("approve")
    assert CODE not in json.dumps(run.model_dump(mode="json"))
    assert not any(CODE.encode() in content for content in kept)


def test_the_page_shows_all_that_waits():
    items = [
        replace(INSTRUCTION, instruction_id=f"i{number:02}", order_no=f"A{number}", amount=number)
        for number in range(1, 31)
    ]
    items[4] = replace(items[4], hold="looks like a repeat of A3")
    lines = people.lines_of_list(list_of(items))[2:]
    orders = [line.split(" | ")[2] for line in lines]

    assert sorted(orders) == sorted(f"A{number}" for number in range(1, 31))
    assert "A5" in orders[:1]


def test_a_page_that_is_too_long_says_where_the_rest_is(monkeypatch):
    monkeypatch.setattr(people, "ROWS_DISPLAYED_MAX", 10)
    items = [replace(INSTRUCTION, instruction_id=f"i{number:02}") for number in range(12)]
    lines = people.lines_of_list(list_of(items))

    assert sum(line.startswith(("| i0", "| i1")) for line in lines) == 10
    assert lines[-1] == (
        "2 more wait and are part of this list: tick a kind and show again, or see the workbooks' "
        "sheets Instructions."
    )


@pytest.mark.parametrize(
    ("ticks", "meant"),
    [
        ({}, ()),
        ({"kinds": ["refund"]}, ("i1", "i2")),
        ({"instructions": ["i0 capture 1.00 EUR"]}, ("i0",)),
        ({"kinds": ["refund"], "instructions": ["i1 refund 1.00 EUR"]}, ("i1",)),
        ({"kinds": ["refund"], "instructions": ["i0 capture 1.00 EUR"]}, "i0 waits no more as ref"),
        ({"kinds": ["refund"], "decision": "reject"}, "give its digest"),
        ({"kinds": ["payout"]}, "no payout waits"),
        ({"kinds": ["refund"], "instructions": ["i9 refund 1.00 EUR"]}, "i9 waits no more"),
        ({"kinds": ["refund"], "list_digest": "0" * 16}, "what is ticked is the list "),
    ],
)
def test_what_is_ticked_is_exactly_what_is_meant(monkeypatch, ticks, meant):
    kinds = (InstructionKind.CAPTURE, InstructionKind.REFUND, InstructionKind.REFUND)
    items = [
        replace(INSTRUCTION, instruction_id=f"i{n}", kind=kind) for n, kind in enumerate(kinds)
    ]
    waits = SimpleNamespace(approvals=list_of(items))
    monkeypatch.setattr(people, "waiting", lambda _: waits)
    shown = {"decision": "show", "list_digest": ""}
    given = {"kinds": [], "instructions": [], **shown, **ticks}
    place: Any = None

    if isinstance(meant, str):
        with pytest.raises(UsageError, match=meant):
            people.boxes_ticked(place, given)
    else:
        assert people.boxes_ticked(place, given) == {"instructions": meant, **shown}


NOW = datetime(2026, 11, 22, 3, tzinfo=UTC)


def run_of(account_id):
    """A night of an account."""
    fields: dict[str, Any] = dict.fromkeys(Run.__dataclass_fields__, "")
    return Run(**fields | {"merchant_id": "100042", "account_id": account_id, "mode": Mode.LIVE})


def doubt(told="Notified by the gateway: payout FAILED (message 0a1b2c3d4e5f)."):
    """A payout in doubt."""
    return Attention(
        what="payout in doubt",
        order_no="",
        transaction_id="",
        currency="EUR",
        amount=25_000,
        since=datetime(2026, 11, 21, 2, 3, tzinfo=UTC),
        next_step=f"{told} Do not send it again.",
        message=told.removesuffix("."),
        instruction_id="i-1",
        is_undecided=True,
    )


def test_what_the_gateway_told_stands_beside_each_doubt():
    (line,) = people.lines_of_doubts([(run_of("100042001"), doubt())], now=NOW)

    assert line == (
        "- 100042/100042001: payout in doubt, 250.00 EUR, since 2026-11-21 02:03 (1 days) "
        r"\[i-1\]. Notified by the gateway: payout FAILED (message 0a1b2c3d4e5f). Do not send "
        "it again."
    )


def test_foreign_words_stay_text_and_a_long_list_says_so():
    shown = [(run_of("1"), doubt("a|b ![i](http:x)"))] * (DOUBTS_DISPLAYED_MAX + 2)
    page = people.lines_of_doubts(shown, now=NOW)

    assert sum(line.startswith("- 100042/1: ") for line in page) == DOUBTS_DISPLAYED_MAX
    assert "![i" not in "".join(page)
    assert page[-1] == "2 more are in `recon status`."


@pytest.mark.parametrize("void", ["", "run r|2 replaced it"])
def test_an_unsigned_night_is_called_not_signed(void):
    night = Night("1", "2", date(2026, 11, 20), "r1", "RECONCILED", (), void, 3)
    last = people.lines_of_nights([night])[-1]

    assert "| not signed for 3 days |" in last
    assert last.replace(r"\|", "").count("|") == 8


def settings_of(folder):
    """Settings with one account, whose folders are made."""
    account = SimpleNamespace(reports=folder / "reports", returned=folder / "returned")
    for each in (account.reports / "below", account.returned):
        each.mkdir(parents=True)
    return SimpleNamespace(accounts={"1/2": account})


def test_a_file_outside_the_declared_folders_is_never_opened(tmp_path):
    settings = settings_of(tmp_path)
    (tmp_path / "secret.xlsx").touch()
    (tmp_path / "reports" / "link.xlsx").symlink_to(tmp_path / "secret.xlsx")

    for name in ("../secret.xlsx", str(tmp_path / "secret.xlsx"), "link.xlsx", "none.xlsx"):
        with pytest.raises(UsageError, match="put it there"):
            returned_path(Path(name), settings=settings)


@pytest.mark.parametrize("name", ["reports/a.xlsx", "reports/below/a.xlsx", "returned/a.xlsx"])
def test_a_file_in_a_declared_folder_is_taken(tmp_path, name):
    settings, wanted = settings_of(tmp_path), tmp_path / name
    wanted.touch()

    assert returned_path(wanted, settings=settings) == wanted.resolve()
    assert returned_path(Path(*Path(name).parts[1:]), settings=settings) == wanted.resolve()


def test_what_a_returned_workbook_says_is_text_on_the_page(monkeypatch):
    pages: list[tuple[str, str]] = []
    monkeypatch.setattr(
        people,
        "create_markdown_artifact",
        lambda markdown, *, key, description: pages.append((markdown, f"{key}: {description}")),
    )
    refused = "Breaks!R7: '![i](http:evil)<b>|' is no resolution"
    sentence = "[x](http:evil).xlsx: 1 refused"

    people.ended("import-resolutions", sentence=sentence, ending="Taken", warnings=[refused])

    ((page, described),) = pages
    assert page.splitlines() == [
        "# Import-resolutions",
        "",
        r"\[x\](http:evil).xlsx: 1 refused",
        "",
        r"- Breaks!R7: '!\[i\](http:evil)\<b>\|' is no resolution",
    ]
    assert described == r"answers-taken: \[x\](http:evil).xlsx: 1 refused"
