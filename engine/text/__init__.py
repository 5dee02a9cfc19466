"""Text before it becomes ids: sentences, and written text as it is spoken."""
