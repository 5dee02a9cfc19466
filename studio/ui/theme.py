"""The studio's theme, dark and light, for desktop and phone.

It shares only class names timbre-… with the tabs.
"""

from __future__ import annotations

from pathlib import Path

import gradio as gr

FONT = ("Inter", "ui-sans-serif", "system-ui", "-apple-system", "Segoe UI", "sans-serif")
MONO = ("ui-monospace", "SFMono-Regular", "Consolas", "monospace")
PINE = gr.themes.Color(
    c50="#eef7f4",
    c100="#d6ebe4",
    c200="#aed7ca",
    c300="#7fbcaa",
    c400="#4f9d89",
    c500="#2f8070",
    c600="#22695c",
    c700="#1c544a",
    c800="#18433c",
    c900="#143731",
    c950="#0a201d",
    name="pine",
)
STYLE = (Path(__file__).parent / "studio.css").read_text(encoding="utf-8")


def theme() -> gr.themes.Base:
    """Gradio's base theme with the studio's colours and without shadows."""
    base = gr.themes.Base(
        primary_hue=PINE,
        secondary_hue=PINE,
        neutral_hue=gr.themes.colors.stone,
        radius_size=gr.themes.sizes.radius_lg,
        font=FONT,
        font_mono=MONO,
    )
    return base.set(
        body_background_fill="*neutral_50",
        body_background_fill_dark="#161514",
        background_fill_primary_dark="#1e1d1b",
        background_fill_secondary_dark="#161514",
        body_text_color_subdued="*neutral_600",
        body_text_color_subdued_dark="*neutral_400",
        block_background_fill="#ffffff",
        block_background_fill_dark="#1e1d1b",
        block_border_width="1px",
        block_border_color="*neutral_200",
        block_border_color_dark="#34322f",
        border_color_primary_dark="#34322f",
        block_shadow="none",
        block_label_background_fill="transparent",
        block_label_background_fill_dark="transparent",
        block_title_text_weight="600",
        input_background_fill="*neutral_50",
        input_background_fill_dark="#171614",
        input_border_width="1px",
        input_border_color_dark="#3d3a36",
        button_primary_background_fill="*primary_600",
        button_primary_background_fill_hover="*primary_700",
        button_primary_background_fill_dark="*primary_500",
        button_primary_background_fill_hover_dark="*primary_600",
        button_primary_text_color="#ffffff",
        color_accent="*primary_600",
        link_text_color="*primary_700",
        link_text_color_dark="*primary_300",
    )
