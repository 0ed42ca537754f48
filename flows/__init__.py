"""Prefect flows: what runs, in which order, on which day."""

import os

from recon.model.uptime import pool_of

# Prefect imports a flow, and Arrow is loaded with it.
os.environ.update(pool_of(os.environ))
