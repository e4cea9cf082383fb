"""Stores of rows per text, in memory and in folders."""
