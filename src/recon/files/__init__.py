"""Reading external files into typed rows and rejects: inbox, formats, kinds of file."""
