"""Three classes: branch and bound over latent space (T3-T5)."""
