"""The live player: plays speech in the browser while it is generated."""
