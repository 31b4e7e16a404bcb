"""Theorem K: local models of every other kernel."""
