"""The nightly run: order of its steps, query of the gateway, report, and notices to people."""
