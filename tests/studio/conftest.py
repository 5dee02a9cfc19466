"""Fixtures of the studio's tests."""

from __future__ import annotations

from tests.studio.browser import browser, open_page, open_pages

__all__ = ["browser", "open_page", "open_pages"]
