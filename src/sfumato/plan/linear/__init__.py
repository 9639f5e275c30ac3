"""Noise for linear queries under many requirements: the question, its forms, its solver."""
