"""What ElevenLabs' SDK asks about voices, models and the account. Nothing is sold here."""

from __future__ import annotations

from typing import Any, Final

import anyio.to_thread
from fastapi import APIRouter

from studio.api.api_context import Shared
from studio.api.errors import ApiError

router = APIRouter(tags=["elevenlabs"])
WITHOUT_END: Final = 2**31 - 1
SETTINGS: Final = {"speed": 1.0}  # what of `voice_settings` counts here


@router.get("/v1/voices/settings/default")
async def default_settings() -> dict[str, Any]:
    return SETTINGS


@router.get("/v1/voices/{voice}")
async def voice(voice: str, context: Shared) -> dict[str, Any]:
    """A preset speaker or a saved voice, by name or id."""
    for name in context.voices.speakers():
        if name.casefold() == voice.casefold():
            return described(name, name, "premade")
    saved = await anyio.to_thread.run_sync(context.library.find, voice)
    if saved is None:
        raise ApiError(404, f"No voice is called '{voice[:200]}'.", "voice_not_found", "voice_id")
    return described(saved.id, saved.name, saved.card.kind, saved.card.note)


@router.get("/v1/voices/{name}/settings")
async def voice_settings(name: str, context: Shared) -> dict[str, Any]:
    await voice(name, context)
    return SETTINGS


@router.get("/v1/user/subscription")
async def subscription(context: Shared) -> dict[str, Any]:
    saved = await anyio.to_thread.run_sync(context.library.list)
    count = sum(not each.built_in for each in saved)
    return {
        "tier": "self-hosted",
        "status": "active",
        "currency": None,
        "character_count": 0,
        "character_limit": WITHOUT_END,
        "max_credit_limit_extension": 0,
        "can_extend_character_limit": False,
        "allowed_to_extend_character_limit": False,
        "voice_slots_used": count,
        "voice_limit": context.settings.saved_voices,
        "voice_add_edit_counter": 0,
        "can_extend_voice_limit": False,
        "can_use_instant_voice_cloning": any(
            able.clone for able in context.engine.capabilities().values()
        ),
        "professional_voice_slots_used": 0,
        "professional_voice_slots_used_in_workspace": 0,
        "professional_voice_limit": 0,
        "can_use_professional_voice_cloning": False,
        "open_invoices": [],
        "has_open_invoices": False,
    }


@router.get("/v1/user")
async def user(context: Shared) -> dict[str, Any]:
    return {
        "user_id": "timbre",
        "workspace_id": "timbre",
        "subscription": await subscription(context),
        "is_new_user": False,
        "can_use_delayed_payment_methods": False,
        "is_onboarding_completed": True,
        "is_onboarding_checklist_completed": True,
        "created_at": 0,
        "seat_type": "workspace_admin",
    }


def described(id: str, name: str, category: str, note: str = "") -> dict[str, Any]:
    return {
        "voice_id": id,
        "name": name,
        "category": category,
        "labels": {},
        "description": note or None,
        "settings": SETTINGS,
    }
