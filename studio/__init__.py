"""The studio: what people and programs meet, on top of the engine."""

VERSION = "0.1.0"
