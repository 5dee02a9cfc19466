"""How the embedded model is made: speech, codec, speaker encoder, talker, export (README.md)."""
