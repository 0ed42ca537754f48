"""What of an account's old nights is still needed: by open months, breaks, books, the next night.

Asked when folders are looked through, and again under the account's lock before each goes.
"""

from dataclasses import dataclass
from datetime import date, timedelta
from functools import cached_property

from recon.model.business_date import month_of
from recon.model.nights import Mode
from recon.steps.care.needed_answers import undecided
from recon.steps.ground import kept_results
from recon.steps.ground.environment import Environment
from recon.steps.ground.night_folder import RESULTS, STEPS, links
from recon.steps.ground.sealed_night import sealed_night
from recon.store import Connection
from recon.store.nights import journal_rows, ledger_rows, let_go_rows, runs
from recon.store.nights.runs import Run
from recon.store.people import closed_months


@dataclass(frozen=True)
class NeededNights:
    """What of an account's nights is still needed."""

    connection: Connection
    environment: Environment
    like: Run
    """Any run of it."""
    days: int

    @property
    def _name(self) -> tuple[str, str]:
        return self.like.merchant_id, self.like.account_id

    @cached_property
    def live(self) -> dict[date, Run]:
        """Its finished live nights by business date."""
        finished = runs.last_finished(
            self.connection, merchant_id=self._name[0], account_id=self._name[1]
        )
        return {day: run for day, run in finished.items() if run.mode is Mode.LIVE}

    @cached_property
    def first_open(self) -> str:
        """The first month with a night that nobody closed, with nothing closed after it."""
        until = self.environment.clock().date()
        months = sorted({month_of(day) for day in self.live})
        return next((month for month in months if not self._is_shut(month, until=until)), "9999-99")

    @cached_property
    def read_from(self) -> date | None:
        """The business date from which on nights are read: by the next one, and by open months."""
        before = [day for day in self.live if month_of(day) < self.first_open]
        return max(before, default=None)

    @cached_property
    def needed(self) -> dict[str, str]:
        """Run -> what still reads its folder."""
        needed = {each.run_id: "a journal of it is not in the books yet" for each in self._journals}
        reader = ledger_rows.newest_reader(self.connection, self.like)
        if reader is not None:
            needed[reader] = "its books are the newest that were read"
        newest = runs.newest_live(
            self.connection, merchant_id=self._name[0], account_id=self._name[1]
        )
        for run in (newest, self.live[max(self.live)]):
            if run is None:
                continue
            needed[run.run_id] = "it is the newest of its account"
            night = sealed_night(self.connection, run, environment=self.environment)
            if RESULTS in night.steps:
                before = night.steps[RESULTS].manifest.about.predecessor
                needed.setdefault(before, "the newest night carried its breaks forward")
        return needed

    @property
    def _journals(self) -> list[journal_rows.Out]:
        return journal_rows.not_seen_in_the_books(self.connection)

    @cached_property
    def open_breaks(self) -> set[str]:
        """Breaks that are open today, what they open again, and the orders that they are of."""
        newest = self.live[max(self.live)]
        frames = kept_results.frames(
            self.connection,
            newest.run_id,
            names=("breaks", "movements"),
            environment=self.environment,
        )
        names = {*frames["breaks"]["break_id"], *frames["breaks"]["order_no"]}
        return (names | {*frames["movements"]["reopens"]}) - {""}

    def needs(self, run: Run) -> str:
        """Why the folder of a run of the account stays; "" when nothing needs it.

        Raises:
            ArchiveError: the newest night, or this one, cannot be read.
        """
        if reason := self.unsettled(run):
            return reason
        if not {link.step for link in links(self.connection, run.run_id)} >= {*STEPS}:
            return "its folder is not whole"
        own = kept_results.open_breaks(self.connection, run.run_id, environment=self.environment)
        shown = set() if own is None else {*own["break_id"], *own["order_no"]}
        is_open = bool(shown & self.open_breaks)
        return f"a break that it shows is still open ({'/'.join(self._name)})" if is_open else ""

    def unsettled(self, run: Run) -> str:
        """Why the folder stays by what the database has; "" when nothing there needs it.

        Raises:
            ArchiveError: the newest night cannot be read.
        """
        month, which = month_of(run.business_date), "/".join(self._name)
        if let_go_rows.let_go_of(self.connection, run.run_id) is not None:
            return "somebody let it go at the same time"
        if closed_months.state_of(self.connection, self._name, month=month).closed is None:
            return f"{month} of {which} is not closed (`recon close {month}`)"
        if not self.live or self.read_from is None:
            return f"nights of {which} are read by what is open"
        if run.business_date >= self.read_from:
            return f"nights of {which} from {self.read_from} on are read by what is open"
        if run.run_id in self.needed:
            return self.needed[run.run_id]
        before = self.environment.clock() - timedelta(days=self.days)
        return undecided(self.connection, run, before=before)

    def _is_shut(self, month: str, *, until: date) -> bool:
        closed = closed_months.closed_since(self.connection, self._name, month=month, until=until)
        return closed is not None


class AllNeededNights:
    """Each account's answers, asked once."""

    def __init__(self, connection: Connection, environment: Environment, days: int) -> None:
        self._asked = (connection, environment, days)
        self._known: dict[tuple[str, str], NeededNights] = {}

    def of(self, run: Run) -> NeededNights:
        """The account of a run."""
        connection, environment, days = self._asked
        return self._known.setdefault(
            (run.merchant_id, run.account_id), NeededNights(connection, environment, run, days)
        )
