"""The Gradio page."""

from studio.ui.gradio_compat.component_stubs import leave_out_stubs

leave_out_stubs()
