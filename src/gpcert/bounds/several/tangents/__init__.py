"""Softmax below its tangents: one functional per class (Theorem 3, T1-T2, T6, T7)."""
