"""A region seen from a reference: suprema, quadratic programmes with a certified dual (Q, B, Z)."""
