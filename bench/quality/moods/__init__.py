"""The moods that come with Timbre Mini: learned from its teacher's voices, measured on others."""
