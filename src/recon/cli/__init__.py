"""The command line: the one module of recon that stands on the top floor."""
