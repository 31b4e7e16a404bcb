"""What is verified once about a stored posterior, before any region is known (docs/maths/bounds.md, F, M)."""
