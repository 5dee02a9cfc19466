"""The commands serve, say, voices and info, on a local engine or on a server.

`app.py` reads arguments and environment and passes them in. It imports a command's modules when the
command is run, so that `--help` needs none of them.
"""
