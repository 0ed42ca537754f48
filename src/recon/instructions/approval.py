"""Approval lists: what two people approve, identified by a digest, and who may approve it.

Two different people approve the same digest. It covers every field that decides what would be sent;
if any of them changes, the list has another digest and earlier approvals of it do not count.
"""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial

from recon.config.approvers import Approver, folded, has_left, person_key
from recon.instructions.instruction import REPEAT, Instruction, terms_of
from recon.instructions.planning import FIRST_PAYEE
from recon.model.money import Money
from recon.model.terms import InstructionKind

DIGEST_CHARACTERS = 16
LARGEST_DISPLAYED = 10
REQUESTED_BY_HAND = r"asked for by hand by (.+?): "
"""Pattern for the start of the hold of an instruction requested at the command line."""


@dataclass(frozen=True, slots=True)
class ApprovalList:
    """Instructions that wait for approval, as one list."""

    digest: str
    items: tuple[Instruction, ...]

    @property
    def sums(self) -> dict[str, int]:
        """Minor units by currency."""
        sums: dict[str, int] = {}
        for item in self.items:
            sums[item.currency] = sums.get(item.currency, 0) + item.amount
        return dict(sorted(sums.items()))

    @property
    def largest(self) -> tuple[Instruction, ...]:
        """Up to ten of the instructions, the largest of each currency before any second largest.

        Amounts of two currencies are never compared; the result is by currency, largest first.
        """
        ordered = sorted(
            self.items, key=lambda item: (item.currency, -item.amount, item.instruction_id)
        )
        ranks: Counter[str] = Counter()
        foremost: list[tuple[int, str, int]] = []
        for place, item in enumerate(ordered):
            foremost.append((ranks[item.currency], item.currency, place))
            ranks[item.currency] += 1
        positions = sorted(place for *_, place in sorted(foremost)[:LARGEST_DISPLAYED])
        return tuple(ordered[place] for place in positions)

    @property
    def repeats(self) -> tuple[Instruction, ...]:
        """Instructions that planning held because they look like repeats of earlier ones."""
        return tuple(item for item in self.items if item.repeats or REPEAT in item.hold)

    @property
    def first_payees(self) -> tuple[Instruction, ...]:
        """Payouts to payees to whom none took effect before."""
        return tuple(item for item in self.items if FIRST_PAYEE in item.hold)


def list_of(instructions: Iterable[Instruction]) -> ApprovalList:
    """Return a list of these instructions, with a digest of their terms, state and hold."""
    items = tuple(sorted(instructions, key=lambda item: item.instruction_id))
    whole = [
        (item.instruction_id, item.natural_key, item.state, item.hold, terms_of(item))
        for item in items
    ]
    digest = hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()
    return ApprovalList(digest[:DIGEST_CHARACTERS], items)


Decides = Callable[[Approver], str]
"""Returns why a person is not the approver required among two people; "" for one who is."""


def decides_on(
    approvals: ApprovalList, *, requesters: Iterable[str], key: Callable[[str], str]
) -> Decides:
    """Return a check of who can approve a list: approvers within their limit who did not ask.

    Args:
        approvals: The list.
        requesters: Names of those who requested any of it by hand.
        key: Returns the identity of a name (`approvers.person_key`).
    """
    holders, within = set(map(key, requesters)), decides_within(approvals.sums, what="the list")

    def problem(person: Approver) -> str:
        return f"{person.name} asked for it" if key(person.name) in holders else within(person)

    return problem


def decides_within(sums: Mapping[str, int], *, what: str) -> Decides:
    """Return a check of who can approve sums: an approver whose limits cover them."""

    def problem(person: Approver) -> str:
        problems = (
            beyond_limit(person, currency=currency, amount=amount, what=what)
            for currency, amount in sums.items()
        )
        return problem_of_role(person) or next(filter(None, problems), "")

    return problem


def problem_of_role(person: Approver) -> str:
    """Return why a person does not have the role of approver; "" if they do."""
    return "" if person.role == "approver" else f"{person.name} is a {person.role}"


def problem_of_two(people: tuple[Approver, Approver], *, decides: Decides = problem_of_role) -> str:
    """Return why two people together may not approve, in any order; "" if they may."""
    problems = list(map(decides, people))
    return (
        "" if "" in problems else f"one of two must be an approver who may: {'; '.join(problems)}"
    )


def problem_of_others(
    person: Approver, *, declared: Iterable[Approver], decides: Decides = problem_of_role
) -> str:
    """Return why nobody else could give the second approval after this person; "" if one could."""
    others = [other for other in declared if folded(other.name) != folded(person.name)]
    if any(not problem_of_two((person, other), decides=decides) for other in others):
        return ""
    reasons = list(dict.fromkeys(filter(None, map(decides, (person, *others)))))
    if not others:
        reasons = ["approvers.toml declares nobody else"]
    return f"after {person.name} nobody would be left for the second word: {'; '.join(reasons)}"


def problem_since(
    people: tuple[str, str], *, approvals: ApprovalList, declared: Mapping[str, Approver]
) -> str:
    """Return why the approval of two people is no longer valid; "" if it is.

    Args:
        people: Names of the first and the second approver, as in reports.
        approvals: What they approved.
        declared: The people as declared now; empty if they are declared elsewhere.
    """
    if problem := problem_of_people(people, did="approved", declared=declared):
        return problem
    if not declared:
        return ""
    decides = decides_on(approvals, requesters=(), key=partial(person_key, declared=declared))
    return problem_of_two(_both(people, declared=declared), decides=decides)


def problem_of_people(
    people: tuple[str, str], *, did: str, declared: Mapping[str, Approver]
) -> str:
    """Return why the decision of two people, on any subject, no longer counts; "" if it does."""
    if not declared:
        return ""
    for name in people:
        if has_left(name, declared=declared):
            return f"{name} {did} it, whom approvers.toml does not declare any more"
    return problem_of_two(_both(people, declared=declared))


def _both(
    people: tuple[str, str], *, declared: Mapping[str, Approver]
) -> tuple[Approver, Approver]:
    first, second = (declared[person_key(name, declared=declared)] for name in people)
    return first, second


def beyond_limit(person: Approver, *, currency: str, amount: int, what: str) -> str:
    """Return why an amount in minor units is beyond a person's limit; "" if it is not."""
    limit = person.limit.get(currency)
    if limit is None:
        return f"{person.name} has no limit in {currency} (approvers.toml)"
    if Money.of_minor_units(amount, currency=currency).amount > limit:
        return f"{what} sums to more {currency} than the limit of {person.name} ({limit})"
    return ""


def requesters_of(holds: Iterable[str]) -> set[str]:
    """Return the people who requested instructions by hand, as their holds say; files have none."""
    holders = (re.match(REQUESTED_BY_HAND, hold) for hold in holds)
    return {match[1] for match in holders if match}


def sums_text(sums: Mapping[str, int]) -> str:
    """Return sums as text, such as `10.00 EUR, 500 JPY`."""
    each_sum = [
        f"{Money.of_minor_units(amount, currency=currency).amount} {currency}"
        for currency, amount in sums.items()
    ]
    return ", ".join(each_sum)


def reported_of(item: Instruction) -> str:
    """Return an instruction as text: its id, kind, amount and subject."""
    what = f"{item.instruction_id} {item.kind} {sums_text({item.currency: item.amount})}"
    return f"{what}, {item.subject}"


def reported_with(first: Instruction) -> str:
    """Return an earlier instruction of the same intention as text, with its state."""
    payment = f", transaction {first.transaction_id}" if first.transaction_id else ""
    named = f", request_id {first.request_id}" if first.request_id else ""
    if first.kind is InstructionKind.PAYOUT:
        named = ""  # its subject has it
    return f"{reported_of(first)}{payment}{named}: {first.state}"
