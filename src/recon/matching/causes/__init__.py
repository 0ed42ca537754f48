"""Why a set is broken, in a sentence, and what to do about it."""
