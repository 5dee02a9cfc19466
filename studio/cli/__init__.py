"""The commands of Timbre, on a local engine or on a server.

`app.py` reads arguments and environment and passes them to `commands`, which imports a command's
modules when the command is run, so that `--help` needs none of them.
"""
