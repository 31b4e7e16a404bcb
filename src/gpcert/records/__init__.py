"""Answers in files: JSON documents that describe themselves, written whole or not at all, read with care."""

from gpcert.records.answer_file import load_answers, save_answers

__all__ = ["load_answers", "save_answers"]
