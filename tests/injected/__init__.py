"""Plain files of any size with planted breaks: truth first, then the files, then the answer key.

Every break code has a recipe that says what truly happened and what each file says of it. The
engine never sees the key. Seeded: the same size and seed give the same rows.
"""

from tests.injected.injected_files import Injected, planted
from tests.injected.recipes import RECIPES, RULES
from tests.injected.shifted_zone import zone_shifted

__all__ = ["RECIPES", "RULES", "Injected", "planted", "zone_shifted"]
