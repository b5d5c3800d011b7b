"""A form that was opened before somebody else changed its row is refused, not obeyed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

from django import forms
from django.utils.translation import gettext as _


class SeenForm(forms.ModelForm):
    """Carries what was stored when it was shown; see `mark`."""

    seen = forms.CharField(required=False, widget=forms.HiddenInput)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.stored = self.mark() if self.instance.pk else ""
        self.initial["seen"] = self.stored

    def mark(self) -> str:
        """Return a digest of what the form would write over."""
        raise NotImplementedError

    def clean(self) -> dict[str, Any] | None:
        cleaned = super().clean()
        if self.data.get(self.add_prefix("seen"), "") != self.stored:
            self.add_error(
                None,
                _("Somebody has changed this meanwhile. Nothing was saved: open the page anew."),
            )
        return cleaned


def digest(facts: Iterable[Any]) -> str:
    """Return a short text that differs when any of the facts does."""
    return hashlib.sha256(repr(list(facts)).encode()).hexdigest()[:16]
