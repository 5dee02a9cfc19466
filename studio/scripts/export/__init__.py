"""A rendered script as audio files, with loudness, tags, chapters and subtitles."""
