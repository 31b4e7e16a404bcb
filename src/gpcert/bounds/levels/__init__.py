"""Which latent mean gives probability p at variance S: the curve of every link (L, W, S)."""
