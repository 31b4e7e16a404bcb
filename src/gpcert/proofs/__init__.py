"""Proof files: what an answer states, with all that a small independent program needs to check it."""
