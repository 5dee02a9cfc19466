"""An application at an address: visitors, logins, headers, retention, shutdown."""
