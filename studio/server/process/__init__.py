"""The process of a server: its data folder, garbage collection, log and end."""
