"""The main job and the papers' experiments as runnable studies."""
