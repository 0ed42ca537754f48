"""What the books have of a month at the bank, made from the truth, with what must be found."""

import random
from dataclasses import dataclass, field

from tests.recon.matching.bank.truth import Scene, Truth, id_of, unknown_id

NOT_COMPARED = frozenset({"exchanged", "at the rate"})
"""It arrived in another currency, and the bank does not say what of the payout it is."""


@dataclass
class Books:
    """Entries, and by which break the books differ by how much."""

    entries: list[dict[str, object]] = field(default_factory=list)
    key: list[tuple[str, int]] = field(default_factory=list)
    """Break id, effect."""
    written_off: list[tuple[str, int]] = field(default_factory=list)
    """The same of what is written off, and no break."""

    def have(self, scene: Scene, amount: int, *, named: bool = True) -> None:
        """The books have it at the bank."""
        row: dict[str, object] = {"merchant_id": "M", "account_id": "A", "source": "l.csv"}
        row |= {"entry_id": f"K{len(self.entries)}", "line": 900 + len(self.entries)}
        row |= {"entry_type": "bank" if amount > 0 else "bank_reversal", "amount": abs(amount)}
        row |= {"currency": currency_of(scene), "booked_at": "2026-11-20T12:00:00Z"}
        row |= {"reference_no": scene.batch if named else "November"}
        self.entries.append(row)


def currency_of(scene: Scene) -> str:
    """Of what arrived, in the words of the payout."""
    return "USD" if scene.story == "abroad" else "EUR"


def books_of(truth: Truth, *, seed: int) -> Books:
    """Books that have everything, nothing, less, or everything as one without a name."""
    chance, books = random.Random(f"books of the bank {seed}"), Books()
    untouched: list[tuple[str, int]] = []
    for scene in truth.scenes:
        way = chance.choice(("each", "each", "nothing", "less", "as one"))
        if not scene.arrived:
            _ahead(scene, books, way=way)
        elif scene.story not in NOT_COMPARED and not _taken(scene, books, way=way):
            untouched.append((own_id(scene), sum(_amounts(scene))))
    _balance(truth, books, untouched=untouched, as_one=seed % 5 == 0)
    _write_off(truth, books, chance=chance)
    return books


def _write_off(truth: Truth, books: Books, *, chance: random.Random) -> None:
    """Somebody gave up on some of it, whole or by another amount, which closes nothing."""
    for scene in truth.scenes:
        missing = [key for key in books.key if key[0] == own_id(scene)]
        way = chance.choice(("whole", "other", "", ""))
        if way and len(missing) == 1 and scene.story != "unknown":
            books.have(scene, abs(missing[0][1]) + (way == "other"))
            books.entries[-1]["entry_type"] = chance.choice(("write_off", "adjustment"))
            if way == "whole":
                books.key.remove(missing[0])
                books.written_off.append(missing[0])


def own_id(scene: Scene) -> str:
    """Of the break that it would be."""
    if scene.story == "unknown":
        return unknown_id(scene.arrived[0])
    return id_of(f"payout:{currency_of(scene)}:{scene.batch}")


def _amounts(scene: Scene) -> list[int]:
    return [entry.ordered[1] if entry.ordered else entry.amount for entry in scene.arrived]


def _ahead(scene: Scene, books: Books, *, way: str) -> None:
    """What never came, and the books have it."""
    if way == "less" and scene.story == "missing":
        books.have(scene, scene.amount)
        books.key.append((own_id(scene), -scene.amount))


def _taken(scene: Scene, books: Books, *, way: str) -> bool:
    """Whether the books have anything of what came."""
    amounts = _amounts(scene)
    if way == "nothing":
        if currency_of(scene) != "EUR":  # no balance of its currency takes it in
            books.key.append((own_id(scene), sum(amounts)))
        return currency_of(scene) != "EUR"
    if scene.story == "unknown" or (way == "as one" and sum(amounts) > 0):
        books.have(scene, sum(amounts), named=False)
        return True
    less = scene.part if way == "less" else 0
    for number, amount in enumerate(amounts):
        books.have(scene, amount - (0 if number else less))
    if less:
        books.key.append((own_id(scene), less))
    return True


def _balance(truth: Truth, books: Books, *, untouched: list[tuple[str, int]], as_one: bool) -> None:
    """An entry of no amount that arrived: all that has none stands with it."""
    if as_one:
        last = truth.scenes[-1]
        plain = Scene(**{**vars(last), "story": "", "arrived": []})
        books.have(plain, 17, named=False)
        books.key.append((id_of("bank:EUR"), sum(amount for _, amount in untouched) - 17))
        return
    books.key += [(own, amount) for own, amount in untouched if amount]
