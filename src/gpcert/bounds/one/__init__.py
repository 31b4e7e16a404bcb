"""Box bounds of one latent."""
