"""Prefill and decode steps of the talker, with the code predictor."""
