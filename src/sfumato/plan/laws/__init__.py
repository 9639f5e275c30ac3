"""The laws of noise a plan may draw from: one final class below DrawLaw a file."""
