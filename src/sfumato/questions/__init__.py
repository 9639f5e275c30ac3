"""What can be published about many individuals: one final class a question.

In:   public facts.
Out:  Question and its classes, found in this folder; Moves, Figure, NoiseLaw, Sums.
Not here: the language (lang/), rows (network/), budgets (plan/).
"""
