"""The card of a model: all that it is asked for, spoken, judged and set beside what is asked."""
