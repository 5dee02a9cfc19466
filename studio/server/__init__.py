"""Serving an application: visitors, logins, headers, shutdown."""
