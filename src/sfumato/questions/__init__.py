"""What can be asked of individuals: one final class a question, and the mathematics behind it.

In:   public facts: ranges, levels, rows per person, the adjacency.
Out:  what is added up, how far one individual can move it, how the answer is read off the noisy numbers.
Not here: the language (lang/), rows and tables (network/), the split of a budget (plan/), noise (mechanisms/).
"""
