"""What the journal already has, as planning looks it up: by what each instruction is about."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from recon.model.words import InstructionState
from recon.settlement.intention import Intention, plain_id


@dataclass(frozen=True, slots=True)
class Earlier:
    """An instruction that the journal has, as planning needs it."""

    intention: Intention
    instruction_id: str
    natural_key: str
    file_name: str
    """"" when it came with no file."""
    state: InstructionState
    is_again: bool = False
    """A capture that was planned a second time: no row of a file means it."""


class Known:
    """Instructions that the journal already has, oldest first, by what they are about."""

    def __init__(
        self, earlier: Iterable[Earlier] = (), *, shown: Mapping[str, str] | None = None
    ) -> None:
        """Take what there is; `shown`: order -> the one transaction the gateway shows for it."""
        self.shown = shown or {}
        self._by_key: dict[str, Earlier] = {}
        self._by_request: dict[str, Earlier] = {}
        self._about: dict[tuple[str, ...], list[Earlier]] = defaultdict(list)
        """kind and subject, order or payment -> earlier ones"""
        for instruction in earlier:
            self.note(instruction)

    def note(self, instruction: Earlier) -> None:
        """Remember one instruction."""
        self._by_key[instruction.natural_key] = instruction
        if instruction.intention.request_id:
            self._by_request.setdefault(plain_id(instruction.intention.request_id), instruction)
        for key in _places(instruction.intention):
            self._about[key].append(instruction)

    def of_key(self, natural_key: str) -> Earlier | None:
        """The instruction of a natural key."""
        return self._by_key.get(natural_key)

    def of_request(self, request_id: str) -> Earlier | None:
        """The first instruction with this request id, whatever it means."""
        return self._by_request.get(plain_id(request_id))

    def near(self, intention: Intention) -> list[Earlier]:
        """Those of the same kind for the same order, payee, subscription or payment."""
        nearby = {
            instruction.instruction_id: instruction
            for key in _places(intention)
            for instruction in self._about.get(key, ())
        }
        return list(nearby.values())

    def beside(self, intention: Intention) -> list[Earlier]:
        """Those of the same kind that may be about the same payment, whatever their amount."""
        return [
            instruction
            for instruction in self.near(intention)
            if instruction.intention.is_of_payment(intention)
        ]

    def alike(self, intention: Intention) -> list[Earlier]:
        """Those that may mean the same, whatever their ids."""
        return [
            instruction
            for instruction in self.beside(intention)
            if instruction.intention.what == intention.what
        ]


def _places(intention: Intention) -> Iterator[tuple[str, ...]]:
    """Under which places an intention is looked up."""
    if intention.subject:
        yield intention.kind.value, intention.subject
        return
    yield intention.kind.value, "order", intention.order_no
    if intention.payment:
        yield intention.kind.value, "payment", intention.payment
