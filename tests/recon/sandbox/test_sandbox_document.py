"""docs/GATEWAY.md in step with the code: every kind, every address."""

import json
import re
from pathlib import Path

from recon.sandbox import SandboxOptions, create_app
from recon.sandbox.exchange import OPERATIONS
from recon.sandbox.faults import KINDS, rules_in

DOCUMENT = (Path(__file__).parents[3] / "docs" / "GATEWAY.md").read_text(encoding="utf-8")
_KIND = re.compile(r'^- `(\{"kind": "([a-z_]+)".*?\})`: (.+)$', re.MULTILINE)


def test_the_document_lists_every_kind_and_no_other() -> None:
    """The table of kinds is the code's."""
    assert [row[1] for row in _KIND.findall(DOCUMENT)] == list(KINDS)


def test_every_example_is_a_rule_of_its_kind() -> None:
    """What the document shows can be pasted into a plan."""
    for example, kind, _ in _KIND.findall(DOCUMENT):
        (rule,) = rules_in(json.loads(example), source=kind, operations=OPERATIONS)
        assert rule.kind == kind


def test_the_document_says_which_kinds_have_a_choice_of_side() -> None:
    """Where `before` is possible the words say so, elsewhere they do not."""
    for example, kind, words in _KIND.findall(DOCUMENT):
        has_choice = len(KINDS[kind].sides) > 1
        says = "either side" in words or "before" in words + example
        assert says == has_choice or kind in {"lag", "stale_signature", "replayed_reply"}, kind


def test_the_document_names_every_address() -> None:
    """Each route under `/_sandbox` is explained."""
    app = create_app(SandboxOptions(orders=0))
    paths = {getattr(route, "path", "") for route in app.routes}
    app.state.sandbox.book.close()
    named = {path for path in paths if path.startswith("/_sandbox")}
    missing = {path for path in named if f"`{path.split('{')[0].rstrip('/')}" not in DOCUMENT}
    assert len(named) > 8
    assert missing == {"/_sandbox/transactions/{transaction_id}"}
