"""A project whose users have an e-mail address for a login, UUID keys, and no page in the admin."""
