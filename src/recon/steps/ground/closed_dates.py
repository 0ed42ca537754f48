"""What may not be done for a business date whose month is closed.

It is asked inside the transaction that begins the change, as a month is closed inside one: of two
at the same moment one is refused.
"""

from datetime import date

from recon.model.business_date import month_of
from recon.model.errors import UsageError
from recon.steps.ground.environment import Environment
from recon.store import Connection
from recon.store.people import closed_months


def refuse_closed(
    connection: Connection,
    account: tuple[str, str],
    *,
    business_date: date,
    kept: str,
    environment: Environment,
) -> None:
    """Refuse what would change a closed month, or one before it; `kept` says what was not done.

    Raises:
        UsageError: the month of the date, or a later one, is closed; the sentence says by whom,
            when, and what to do.
    """
    month = month_of(business_date)
    today = environment.clock().date()
    closed = closed_months.closed_since(connection, account, month=month, until=today)
    if closed is None:
        return
    lies = "in" if closed.month == month else "before"
    msg = (
        f"{business_date} lies {lies} {closed.month}, which is CLOSED ({closed.by}, "
        f"{closed.at:%Y-%m-%d %H:%M} UTC); {kept}: what came since stands in the open month; to "
        f"change {closed.month}, two people say `recon reopen {closed.month} --reason WHY`"
    )
    raise UsageError(msg)
