"""Answers: audio in a format, whole or streamed, and what happens when a client disconnects."""
