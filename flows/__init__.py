"""Prefect flows: what runs, in which order, on which day."""

import os

from recon.model.uptime import pool_of

# Importing a flow also loads Arrow, which reads its memory pool from the environment.
os.environ.update(pool_of(os.environ))
