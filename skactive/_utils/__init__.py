"""Helpers for texts, labels, containers, pipelines, random numbers and threads."""
