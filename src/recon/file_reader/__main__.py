"""Starts the warm process: `python -m recon.file_reader 3`, where 3 is the socket it answers on."""

import sys

from recon.file_reader.child import serve

serve(int(sys.argv[1]))
