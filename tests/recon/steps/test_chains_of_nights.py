"""Nights one after the other over one gateway: what opens, closes and comes back can be signed."""

import shutil
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import pytest
from python_calamine import CalamineWorkbook

from recon.cli.workbooks import workbooks
from recon.sandbox import SandboxOptions
from recon.steps.ground import kept_results
from recon.steps.ground.identity import identify
from recon.store.nights import runs
from tests.recon.steps.conftest import ON_POSTGRESQL, Begun, Merchant, opened
from tests.recon.steps.signing import sign_seen

pytestmark = pytest.mark.xdist_group("chains")
"""They share what takes longer to make than to look at."""

PEOPLE = """
[approvers.anna]
name = "Anna Berg"
[approvers.dan]
name = "Dan Orr"
role = "reviewer"
"""
DAYS = ("2026-11-20", "2026-11-23", "2026-11-24", "2026-11-25", "2026-11-26")
"""Business days; the first two have a weekend between them."""
LEDGER_HEADER = (
    "entry_id,merchant_id,account_id,order_no,entry_type,currency,amount,booked_at,"
    "reverses_entry_id\n"
)
NOBODY_LISTENS = "http://127.0.0.1:9"


Done = tuple[str, Path]
"""Run id and workbook of a night."""


class Night(NamedTuple):
    """What the books say of two orders on one night, and whether the gateway answers."""

    ledger: str
    """CSV lines; {a}, {b} and {a_amount}, {b_amount} are the two orders."""
    gateway: bool = True


Play = Callable[[Sequence[Night]], tuple[Merchant, tuple[Done, ...]]]
"""The merchant after nights, and what each of them left."""
BOTH = """\
E1,100042,100042001,{a},capture,EUR,{a_amount},2026-11-19T10:00:00Z,
E2,100042,100042001,{b},capture,EUR,{b_amount},2026-11-19T10:00:00Z,
"""
ONLY_B = "E2,100042,100042001,{b},capture,EUR,{b_amount},2026-11-19T10:00:00Z,\n"
A_REVERSED = (
    BOTH
    + """\
E3,100042,100042001,{a},capture_reversal,EUR,{a_amount},2026-11-19T11:00:00Z,E1
"""
)
A_BOOKED_AGAIN = (
    A_REVERSED + "E4,100042,100042001,{a},capture,EUR,{a_amount},2026-11-19T12:00:00Z,\n"
)
A_REVERSED_AGAIN = (
    A_BOOKED_AGAIN
    + """\
E5,100042,100042001,{a},capture_reversal,EUR,{a_amount},2026-11-19T13:00:00Z,E4
"""
)
B_REVERSED = "E6,100042,100042001,{b},capture_reversal,EUR,{b_amount},2026-11-19T13:00:00Z,E2\n"
BOTH_REVERSED = A_REVERSED + B_REVERSED
A_SMALL = A_REVERSED + "E7,100042,100042001,{a},capture,EUR,0.01,2026-11-19T12:00:00Z,\n"


def settled_folder(merchant: Merchant) -> None:
    """People who sign, and authorisations that do not lapse."""
    (merchant.folder / "config" / "approvers.toml").write_text(PEOPLE)
    path = merchant.folder / "config" / "rules.toml"
    path.write_text(path.read_text() + "\n[authorisation]\nvalid_days = 365\n")


class Chains:
    """Nights one after the other; those that several chains begin with are played once."""

    def __init__(self, merchant: Merchant, *, state: Path, kept: Path) -> None:
        """Begin with a merchant whose sandbox has its database at `state`."""
        self._state, self._kept = state, kept
        self._known: dict[tuple[Night, ...], tuple[Begun, tuple[Done, ...]]] = {}
        self._keep((), merchant, done=())

    def play(self, nights: Sequence[Night]) -> tuple[Merchant, tuple[Done, ...]]:
        """The merchant after these nights, and run id and workbook of each."""
        chain = tuple(nights)
        length = next(n for n in range(len(chain), -1, -1) if chain[:n] in self._known)
        begun, done = self._known[chain[:length]]
        merchant = begun.again()
        passed = sum(_hours_before(number) for number in range(length))
        merchant.post("/_sandbox/clock", {"seconds": passed * 3600})
        for number in range(length, len(chain)):
            done = (*done, play_one(merchant, number, night=chain[number]))
            self._keep(chain[: number + 1], merchant, done=done)
        return merchant, done

    def _keep(
        self, chain: tuple[Night, ...], merchant: Merchant, *, done: tuple[Done, ...]
    ) -> None:
        kept = self._kept / str(len(self._known))
        self._known[chain] = (Begun.of(merchant, state=self._state, kept=kept), done)


@pytest.fixture(scope="module")
def chains(tmp_path_factory: pytest.TempPathFactory, migrated: Path) -> Iterator[Chains]:
    """Of a merchant with people who sign; looks into the files of SQLite."""
    place = tmp_path_factory.mktemp("chains")
    (place / "own").mkdir()
    url = f"sqlite:///{shutil.copy(migrated, place / 'own' / 'recon.sqlite')}"
    options = SandboxOptions(orders=300, state=place / "gateway.sqlite")
    with opened(place / "own", options=options, database_url=url) as merchant:
        settled_folder(merchant)
        yield Chains(merchant, state=place / "gateway.sqlite", kept=place / "kept")


@pytest.fixture
def play(request: pytest.FixtureRequest) -> Play:
    """Plays nights; on PostgreSQL each test plays all of its own."""
    if not ON_POSTGRESQL:
        kept: Chains = request.getfixturevalue("chains")
        return kept.play
    merchant: Merchant = request.getfixturevalue("merchant")

    def whole(nights: Sequence[Night]) -> tuple[Merchant, tuple[Done, ...]]:
        settled_folder(merchant)
        return merchant, tuple(play_one(merchant, *each) for each in enumerate(nights))

    return whole


def play_one(merchant: Merchant, number: int, night: Night) -> Done:
    """A night on its business day; its run id and its workbook."""
    paid = [one for one in merchant.payments("captured") if one.currency == "EUR"]
    a, b = [one for one in paid if one.ordered_at < "2026-11-18"][:2]
    named = {"a": a.order_no, "b": b.order_no, "a_amount": a.amount, "b_amount": b.amount}
    day = DAYS[number]
    if hours := _hours_before(number):
        merchant.wait(hours=hours)
    other = merchant.order(a, order_no=f"N-{day}", status="cancelled")
    merchant.drop(f"orders-{day}.csv", merchant.order(a), merchant.order(b), other)
    (merchant.folder / "ledger.csv").write_text(LEDGER_HEADER + night.ledger.format(**named))
    gateway = merchant.sandbox.base_url if night.gateway else NOBODY_LISTENS
    merchant.variables["RECON_GATEWAY_BASE_URL"] = gateway
    verdict = merchant.night(date=day, workbooks=workbooks())
    return _agreed(merchant, verdict=verdict.value)


def _hours_before(number: int) -> int:
    """Between a night and the one before it; none before the first."""
    days = (_day(DAYS[number]) - _day(DAYS[number - 1])).days if number else 0
    return 24 * days


def _day(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _agreed(merchant: Merchant, *, verdict: str) -> Done:
    """The newest night, once all that tell its verdict tell the same."""
    with merchant.environment() as environment, environment.store.reading() as connection:
        done = runs.finished(connection)[-1]
        run = runs.get(connection, done.run_id)
        kept = kept_results.load(connection, done.run_id, environment=environment)
    assert kept is not None
    path = Path(done.workbook)
    said = {one.step: one.figures.get("verdict") for one in merchant.told}
    page_one = CalamineWorkbook.from_path(str(path)).get_sheet_by_name("Summary")
    failing = [total for total in kept.control_totals if not total.passed]
    told = [
        verdict,
        run.verdict,
        said["reconcile"],
        said["report"],
        page_one.to_python(skip_empty_area=False)[3][1],
    ]
    assert (set(told), failing) == ({verdict}, []), (told, failing)
    return done.run_id, path


def rolled(path: Path) -> dict[str, int]:
    """The line of counts of the roll-forward, as it stands in the file."""
    rows = CalamineWorkbook.from_path(str(path)).get_sheet_by_name("Control totals").to_python()
    at = next(place for place, row in enumerate(rows) if "Open the night before" in row)
    line = dict(zip(rows[at], rows[at + 1], strict=True))
    return {
        str(title): int(cell) for title, cell in line.items() if isinstance(cell, float) and cell
    }


OPEN_AGAIN = {"Open again": 1, "Open now": 1, "Rows on Breaks": 1}
CHAINS = {
    "booked, then reversed": ([Night(ONLY_B), Night(BOTH), Night(A_REVERSED)], OPEN_AGAIN),
    "an outage": ([Night(ONLY_B), Night(ONLY_B, gateway=False), Night(ONLY_B)], OPEN_AGAIN),
    "closed twice": (
        [
            Night(ONLY_B),
            Night(BOTH),
            Night(A_REVERSED),
            Night(A_BOOKED_AGAIN),
            Night(A_REVERSED_AGAIN),
        ],
        OPEN_AGAIN,
    ),
    "an outage before it comes again": (
        [Night(ONLY_B), Night(BOTH), Night(A_REVERSED, gateway=False), Night(A_REVERSED)],
        OPEN_AGAIN,
    ),
    "an outage while it is open again": (
        [
            Night(ONLY_B),
            Night(BOTH),
            Night(A_REVERSED),
            Night(A_REVERSED, gateway=False),
            Night(A_REVERSED),
        ],
        OPEN_AGAIN,
    ),
    "closed behind an outage, then open": (
        [
            Night(ONLY_B),
            Night(BOTH),
            Night(A_REVERSED, gateway=False),
            Night(A_BOOKED_AGAIN),
            Night(A_REVERSED_AGAIN),
        ],
        OPEN_AGAIN,
    ),
    "another code on return": ([Night(ONLY_B), Night(BOTH), Night(A_SMALL)], OPEN_AGAIN),
    "another code after an outage": (
        [Night(ONLY_B), Night(ONLY_B, gateway=False), Night(A_SMALL)],
        OPEN_AGAIN,
    ),
    "two at once": (
        [Night(""), Night(BOTH), Night(BOTH_REVERSED)],
        {"Open again": 2, "Open now": 2, "Rows on Breaks": 2},
    ),
    "two at once, one from out of sight": (
        [Night(""), Night(ONLY_B), Night(ONLY_B, gateway=False), Night(A_REVERSED + B_REVERSED)],
        {"Open again": 2, "Open now": 2, "Rows on Breaks": 2},
    ),
    "one ends as another comes again": (
        [Night(ONLY_B), Night(BOTH), Night(A_REVERSED), Night(A_BOOKED_AGAIN + B_REVERSED)],
        {
            "Open the night before": 1,
            "New": 1,
            "Matched late": -1,
            "Open now": 1,
            "Rows on Breaks": 1,
        },
    ),
}


@pytest.mark.parametrize(
    ("nights", "last"), [pytest.param(*chain, id=name) for name, chain in CHAINS.items()]
)
def test_a_night_on_which_breaks_come_back_is_signed(
    play: Play, nights: list[Night], last: dict[str, int]
) -> None:
    """Whatever came back, all that tell the verdict agree, and two people sign every night."""
    merchant, played = play(nights)
    for run_id, _ in played:
        with merchant.environment() as environment:
            for role, name in (("reviewer", "dan"), ("approver", "anna")):
                person = identify(name, code=None, environment=environment)
                night = sign_seen(run_id, role=role, person=person, environment=environment)
    assert [one.role for one in night.signed] == ["reviewer", "approver"]
    assert rolled(played[-1][1]) == last
