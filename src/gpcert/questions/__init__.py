"""The public questions: one module each, all on the same certified bounds and the same search."""
