"""Audio in and out: checked reference audio, audio files, the loudspeaker."""
