"""The demo's sample night: truth first, then the files, then the answer key beside them.

`sample_night` decides, `files` writes. Seeded: the same effects and seed give the same bytes.
"""

from recon.sandbox.sample_night.planted_night import Account, SampleNight, sample_night

__all__ = ["Account", "SampleNight", "sample_night"]
