"""Attacks: good points of a region, batched, for every norm: bounds robustness from above, proves nothing."""
