"""What the form for money in doubt shows, and what it takes."""

from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import SecretStr

from flows.prefect_server import PrefectServer
from flows.resolve import DOUBTS_SHOWN_MAX, OfferedWord, markdown_of, resolve
from recon.model.figures import Attention
from recon.model.nights import Mode
from recon.steps.people.verdicts import STATES
from recon.store.nights.runs import Run
from tests.flows.flow_in_process import prefect_of

AT = datetime(2026, 11, 21, 2, 3, tzinfo=UTC)


def run_of(account_id: str) -> Run:
    """A night of an account."""
    fields: dict[str, Any] = dict.fromkeys(Run.__dataclass_fields__, "")
    return Run(**fields | {"merchant_id": "100042", "account_id": account_id, "mode": Mode.LIVE})


def doubt(told: str = "The gateway told by itself: payout FAILED (message 0a1b2c3d4e5f).") -> Any:
    """A payout in doubt."""
    return Attention(
        what="payout in doubt",
        order_no="",
        transaction_id="",
        currency="EUR",
        amount=25_000,
        since=AT,
        next_step=f"{told} Do not send it again.",
        message=told.removesuffix("."),
        instruction_id="i-1",
        is_undecided=True,
    )


def test_the_form_for_doubts_starts_by_only_looking() -> None:
    """Whoever just submits it has decided nothing, and Prefect never repeats a decision."""
    assert resolve.retries == 0
    assert resolve.persist_result is False
    assert resolve.parameters.properties["verdict"]["default"] == "show"
    assert {one.value for one in OfferedWord} - {"show", "take_back"} == set(STATES)


def test_what_the_gateway_told_stands_beside_each_doubt() -> None:
    """Id, money and since when first, for a page cuts the rest; the message that one may name."""
    page = markdown_of([(run_of("100042001"), doubt())], "1 in doubt.").splitlines()

    assert page[-1].startswith("| i-1 | payout in doubt |  | 250.00 EUR | 2026-11-21 02:03 UTC |")
    assert "| 100042/100042001 | The gateway told by itself: payout FAILED" in page[-1]
    assert "(message 0a1b2c3d4e5f)" in page[-1]
    assert page[6].startswith("- payout in doubt, instruction i-1: The gateway told by itself: ")


def test_foreign_words_stay_in_their_cell_and_a_long_list_says_so() -> None:
    """No bar begins another column, no link leads away; rows that are not shown are counted."""
    shown = [(run_of("1"), doubt("a|b ![i](http:x)"))] * (DOUBTS_SHOWN_MAX + 2)
    page = markdown_of(shown, "102 in doubt ![i](http:x).").splitlines()

    cells = [line.replace(r"\|", "") for line in page if line.startswith("| i-1")]
    assert {line.count("|") for line in cells} == {8}
    assert "![i" not in "".join(page)
    assert page[-1] == "2 more stand in `recon status`."


@pytest.mark.flow
@pytest.mark.usefixtures("people")
@pytest.mark.parametrize(
    ("given", "name", "words"),
    [
        ((OfferedWord.SHOW, "", "", "", "", None), "Shown", "0 in doubt."),
        (
            (OfferedWord.APPLIED, "", "", "", "", None),
            "Refused",
            "name the instruction and who you are",
        ),
        (
            (OfferedWord.APPLIED, "i-1", "seen in the portal", "", "anna", SecretStr("918273")),
            "Refused",
            "the code of anna is not right; nothing was changed",
        ),
    ],
)
def test_looking_and_refusals_are_answers(
    server: PrefectServer,
    caplog: pytest.LogCaptureFixture,
    given: Any,
    name: str,
    words: str,
) -> None:
    """What is refused is told by that sentence, in state and log, and by no traceback."""
    with prefect_of(server):
        last = resolve(*given, return_state=True)

    assert (last.name, last.message) == (name, words)
    assert words in caplog.text
    assert [word for word in ("Traceback", "exception") if word in caplog.text] == []
