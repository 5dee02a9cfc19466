"""Audio in and out: checked reference audio, sound files, the loudspeaker."""
