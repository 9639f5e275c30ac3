"""What was drawn, as certificates record it: one file a family of events."""
