"""The laws of noise that are drawn on a grid: one final class below GridLaw a file."""
