"""Result rows of classified sets: breaks, effects, their ids and movements."""
