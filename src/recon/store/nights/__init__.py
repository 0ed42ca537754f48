"""Nights in the database: the files they read, gateway answers, inputs, results and sign-offs."""
