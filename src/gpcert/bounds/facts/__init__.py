"""What is verified once about a stored posterior, before any region is known (docs/maths.md, F and M1-M2)."""
