"""What moves: instructions, batches, the journal, doubts."""
