"""A simulated payment gateway: stateful, signed, with faults on demand, over real HTTP.

For the command line, the demo and tests only. Where the gateway's document is silent, its behaviour
is our own choice, written in `sandbox.toml`.
"""

from recon.sandbox.options import CLOCK_START, DEMO_BUSINESS_DATE, SandboxOptions
from recon.sandbox.server import RunningSandbox, create_app, serve, serving

__all__ = [
    "CLOCK_START",
    "DEMO_BUSINESS_DATE",
    "RunningSandbox",
    "SandboxOptions",
    "create_app",
    "serve",
    "serving",
]
