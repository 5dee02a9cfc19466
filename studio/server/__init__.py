"""Serving an application: visitors, logins, headers, retention, shutdown."""
