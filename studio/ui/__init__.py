"""The Gradio page."""

from studio.ui.gradio_compat.lean_gradio import leave_out

leave_out()
