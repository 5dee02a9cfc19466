"""How fast, how soon and how smoothly the engine speaks. Knows only the engine's public face."""
