"""Expectations of links and of the softmax under normal laws, with bounds of their errors."""
