"""What people approve: the exact list, bound by its digest, and who may approve it.

Two different people say yes to one digest. The digest covers every field that decides what would be
sent; when any of them changes, the list is another one and earlier words for it count for nothing.
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
LARGEST_SHOWN = 10
ASKED_BY_HAND = r"asked for by hand by (.+?): "
"""How the hold of an instruction begins that a person asked for at the command line."""


@dataclass(frozen=True, slots=True)
class ApprovalList:
    """Instructions that wait for people, as one list."""

    digest: str
    items: tuple[Instruction, ...]

    @property
    def sums(self) -> dict[str, int]:
        """Currency -> minor units."""
        sums: dict[str, int] = {}
        for item in self.items:
            sums[item.currency] = sums.get(item.currency, 0) + item.amount
        return dict(sorted(sums.items()))

    @property
    def largest(self) -> tuple[Instruction, ...]:
        """Ten of them, the largest of each currency before the second ones of any.

        Amounts of two currencies are never compared: they stand by currency, largest first.
        """
        ordered = sorted(
            self.items, key=lambda item: (item.currency, -item.amount, item.instruction_id)
        )
        ranks: Counter[str] = Counter()
        foremost: list[tuple[int, str, int]] = []
        for place, item in enumerate(ordered):
            foremost.append((ranks[item.currency], item.currency, place))
            ranks[item.currency] += 1
        places = sorted(place for *_, place in sorted(foremost)[:LARGEST_SHOWN])
        return tuple(ordered[place] for place in places)

    @property
    def repeats(self) -> tuple[Instruction, ...]:
        """What planning held because it looks like something that was there before."""
        return tuple(item for item in self.items if item.repeats or REPEAT in item.hold)

    @property
    def first_payees(self) -> tuple[Instruction, ...]:
        """Payouts to somebody to whom none took effect before."""
        return tuple(item for item in self.items if FIRST_PAYEE in item.hold)


def list_of(instructions: Iterable[Instruction]) -> ApprovalList:
    """The list of these instructions with its digest, over what would be sent and why it waits."""
    items = tuple(sorted(instructions, key=lambda item: item.instruction_id))
    whole = [
        (item.instruction_id, item.natural_key, item.state, item.hold, terms_of(item))
        for item in items
    ]
    digest = hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()
    return ApprovalList(digest[:DIGEST_CHARACTERS], items)


Decides = Callable[[Approver], str]
"""Why a person is not the approver that two people need among them; "" for one who is."""


def decides_on(
    wanted: ApprovalList, *, asked_by: Iterable[str], key: Callable[[str], str]
) -> Decides:
    """Who can let a list go: an approver whose limit covers it, and who did not ask for any of it.

    Args:
        wanted: the list.
        asked_by: who asked for any of it by hand.
        key: who a name means (`approvers.person_key`).
    """
    asked = set(map(key, asked_by))

    def problem(person: Approver) -> str:
        if key(person.name) in asked:
            return f"{person.name} asked for it"
        problems = (
            beyond_limit(person, currency=currency, amount=amount, what="the list")
            for currency, amount in wanted.sums.items()
        )
        return problem_of_role(person) or next(filter(None, problems), "")

    return problem


def problem_of_role(person: Approver) -> str:
    """Why somebody is no approver, in words; "" when they are one."""
    return "" if person.role == "approver" else f"{person.name} is a {person.role}"


def problem_of_two(people: tuple[Approver, Approver], *, decides: Decides = problem_of_role) -> str:
    """Why two people together may not, in whatever order they spoke; "" when they may."""
    problems = list(map(decides, people))
    return (
        "" if "" in problems else f"one of two must be an approver who may: {'; '.join(problems)}"
    )


def problem_of_rest(
    person: Approver, *, declared: Iterable[Approver], decides: Decides = problem_of_role
) -> str:
    """Why nobody would be left who could say the same as this person; "" while somebody is."""
    others = [other for other in declared if folded(other.name) != folded(person.name)]
    if any(not problem_of_two((person, other), decides=decides) for other in others):
        return ""
    reasons = list(dict.fromkeys(filter(None, map(decides, (person, *others)))))
    if not others:
        reasons = ["approvers.toml declares nobody else"]
    return f"after {person.name} nobody would be left for the second word: {'; '.join(reasons)}"


def problem_since(
    people: tuple[str, str], *, wanted: ApprovalList, declared: Mapping[str, Approver]
) -> str:
    """Why what two people approved may not go any more; "" when it may.

    Args:
        people: who spoke first and who spoke second, by their names in reports.
        wanted: what they approved.
        declared: the people as they are declared now; nobody: they are declared elsewhere.
    """
    if problem := problem_of_people(people, did="approved", declared=declared):
        return problem
    if not declared:
        return ""
    decides = decides_on(wanted, asked_by=(), key=partial(person_key, declared=declared))
    return problem_of_two(_both(people, declared=declared), decides=decides)


def problem_of_people(
    people: tuple[str, str], *, did: str, declared: Mapping[str, Approver]
) -> str:
    """Why the words of two people count no more, whatever they were about; "" while they do."""
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
    """Why minor units of a currency are more than somebody may let go; "" when they are not."""
    limit = person.limit.get(currency)
    if limit is None:
        return f"{person.name} has no limit in {currency} (approvers.toml)"
    if Money.of_minor_units(amount, currency=currency).amount > limit:
        return f"{what} sums to more {currency} than the limit of {person.name} ({limit})"
    return ""


def requesters_of(holds: Iterable[str]) -> set[str]:
    """People who asked for an instruction themselves, by what it waited for; files are nobody."""
    asked = (re.match(ASKED_BY_HAND, hold) for hold in holds)
    return {match[1] for match in asked if match}


def sums_text(sums: Mapping[str, int]) -> str:
    """Sums in words."""
    shown = [
        f"{Money.of_minor_units(amount, currency=currency).amount} {currency}"
        for currency, amount in sums.items()
    ]
    return ", ".join(shown)


def reported_of(item: Instruction) -> str:
    """One instruction in words: its id, what it does, and to what."""
    what = f"{item.instruction_id} {item.kind} {sums_text({item.currency: item.amount})}"
    return f"{what}, {item.subject}"


def reported_with(first: Instruction) -> str:
    """An earlier instruction of the same intention, in words, with what became of it."""
    payment = f", transaction {first.transaction_id}" if first.transaction_id else ""
    named = f", request_id {first.request_id}" if first.request_id else ""
    if first.kind is InstructionKind.PAYOUT:
        named = ""  # its subject has it
    return f"{reported_of(first)}{payment}{named}: {first.state}"
