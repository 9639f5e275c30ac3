"""What can be published beside answers to questions: one final class a file, found by looking (questions/registry.py).

In:   nothing.
Out:  the kinds of publication.
Not here: what all of them have (questions/kind.py).
"""
