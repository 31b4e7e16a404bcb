"""Answers in files: JSON documents that describe themselves, written whole or not at all, read with care."""

from gpcert.records.answer_file import save_answers

__all__ = ["save_answers"]
