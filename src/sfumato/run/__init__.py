"""Execution: data sources, engines, studies. The only room that sees data."""
