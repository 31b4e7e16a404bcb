"""Many boxes, or many lines, in one product."""
