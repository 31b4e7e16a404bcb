"""Box bounds of several latents."""
