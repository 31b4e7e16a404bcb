"""Theorem 1: local models of the Gaussian kernel."""
