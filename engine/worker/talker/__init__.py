"""One frame of speech codes for some slots: prefill, decode step, code predictor."""
