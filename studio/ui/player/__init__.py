"""The live player: the strip that plays a voice in the browser while it is made."""
