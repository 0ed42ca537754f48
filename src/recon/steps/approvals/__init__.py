"""What people do between nights: view what waits, give verdicts, answer breaks, sign off."""
