"""Where tables lie when they are not one file: databases, folders, servers. One file a kind."""
