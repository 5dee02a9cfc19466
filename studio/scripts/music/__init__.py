"""Music and ambience under the lines of a script: cues, their sound, and the mix with speech."""
