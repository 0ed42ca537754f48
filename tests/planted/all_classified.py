"""The proof without the short way of exact sets: slow, and never another result."""

from datetime import datetime

import numpy as np

from recon.config.rules import Rules
from recon.matching.breaks.sum_bounds import refuse_beyond_sums
from recon.matching.engine import prepared
from recon.matching.exact.aside import Exact, others_of
from recon.matching.exact.exact_search import keys_of, legs_of, marked
from recon.matching.frames.sources import Previous, Sources
from recon.proof.control_totals import Proof
from recon.proof.engine import classified


def prove_all_classified(
    sources: Sources, *, rules: Rules, as_of: datetime, previous: Previous | None
) -> Proof:
    """What `prove` must come to as well: everything is left for classification."""
    refuse_beyond_sums(sources)
    sources = prepared(sources, rules=rules)
    legs = legs_of(marked(sources), rules=rules)
    keys = keys_of(legs, others=others_of(sources, previous=previous))
    nothing = np.zeros(0, dtype=np.intp)
    left = {name: np.arange(len(leg.frame)) for name, leg in legs.items()}
    rows = dict.fromkeys(legs, nothing)
    exact = Exact(rows, nothing.astype(np.int64), left, keys, sources, keys.take({}))
    return classified(sources, exact=exact, rules=rules, as_of=as_of, previous=previous)
