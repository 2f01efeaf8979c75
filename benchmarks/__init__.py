"""Figures of speed, each measured beside its floor in the same run."""
