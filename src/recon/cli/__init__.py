"""The command line: the one module of recon that stands on the top floor.

Commands import what they use when they run, so that `recon --help` stays quick.
"""

from recon.cli.commands import app, main

__all__ = ["app", "main"]
