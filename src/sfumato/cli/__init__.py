"""The `sfumato` command: one file a command; app.py mounts them and prints what went wrong."""
