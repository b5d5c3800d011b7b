"""Django's own tests of its task interface, run on our backend."""
