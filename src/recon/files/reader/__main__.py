"""Starts the warm process: `python -m recon.files.reader 3`; 3 is the socket it answers on."""

import sys

from recon.files.reader.child import serve

serve(int(sys.argv[1]))
