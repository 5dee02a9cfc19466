"""What the Speak tab's fields offer and tell, by what is here."""

from __future__ import annotations

from pathlib import Path

from engine import Library, SpeechRequest
from engine.testing import FakeCheckpoint, FakeEngine, fake_capabilities
from studio.context import Studio
from studio.takes.live_takes import LiveTakes
from studio.takes.take_store import Takes
from studio.ui.tabs.speak_handlers import SpeakHandlers
from tests.support.tab_makers import some_clone


def test_the_count_tells_of_a_language_that_nobody_here_speaks(tmp_path: Path) -> None:
    capabilities = fake_capabilities("one", languages=("english",))
    with FakeEngine([FakeCheckpoint(capabilities)]) as engine:
        made = Studio(engine, Library(tmp_path / "v"), LiveTakes(), Takes(tmp_path / "t"))
        for text in ("你好。", "おはよう", "안녕", "Привет, Anna"):
            assert "No model here speaks" in SpeakHandlers(made).count(text)
        assert "No model" not in SpeakHandlers(made).count("Good evening, François!")
        engine.exchange(
            "one", "two", FakeCheckpoint(fake_capabilities("two", languages=("russian",)))
        )
        assert "No model" not in SpeakHandlers(made).count("Привет, Anna")


def test_what_is_saved_is_listed_as_it_was_written(studio: Studio) -> None:
    saved = studio.library.save("My Own", some_clone())
    cards, _ = SpeakHandlers(studio).listed("", None, "ryan")
    assert f'data-key="#{saved.id}"' in cards
    assert "<strong>My Own" in cards
    assert "<strong>Ryan" in cards


def test_the_search_names_a_blend_that_can_be_spoken(studio: Studio) -> None:
    written = studio.choices().example()
    assert studio.engine.submit(SpeechRequest("Hi", studio.choices().read(written))).collect().any()
