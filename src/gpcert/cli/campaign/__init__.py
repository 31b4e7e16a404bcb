"""Campaigns: many questions about many rows from one file, kept in a store, resumed by running again."""
