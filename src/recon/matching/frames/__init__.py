"""Frames and arrays that the engine works on, with helpers to group, number and sort them."""
