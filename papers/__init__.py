"""The papers' experiments as runnable studies; `sfumato reproduce` finds them in a checkout."""
