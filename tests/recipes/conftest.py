"""What follows a recipe adds to the house wherever it is imported: these are run in processes of their own."""

collect_ignore = ["follow.py", "follow_kind.py", "follow_law.py", "follow_mechanism.py", "laws", "publish_favourite.py"]
