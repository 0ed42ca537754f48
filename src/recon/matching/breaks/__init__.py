"""What was judged as the rows of a result: breaks, effects, their ids and movements."""
