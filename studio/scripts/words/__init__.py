"""The words of a line in its sound, and some of them exchanged."""
