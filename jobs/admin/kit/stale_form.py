"""Optimistic locking: a form is refused if its row has changed since the form was opened."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

from django import forms
from django.utils.translation import gettext as _


class StaleCheckForm(forms.ModelForm):
    """A form that carries the digest of its row, see `mark`, from when it was opened."""

    seen = forms.CharField(required=False, widget=forms.HiddenInput)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.stored = self.mark() if self.instance.pk else ""
        self.initial["seen"] = self.stored

    def mark(self) -> str:
        """Return a digest of the stored values that the form would overwrite."""
        raise NotImplementedError

    def clean(self) -> dict[str, Any] | None:
        cleaned = super().clean()
        if self.data.get(self.add_prefix("seen"), "") != self.stored:
            self.add_error(
                None,
                _("Another person has changed this since. Nothing was saved: reload the page."),
            )
        return cleaned


def digest(facts: Iterable[Any]) -> str:
    """Return a short text that changes when any of the facts changes."""
    return hashlib.sha256(repr(list(facts)).encode()).hexdigest()[:16]
