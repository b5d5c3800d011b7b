"""The users: as far from Django's own as its documentation allows."""

from typing import ClassVar
from uuid import uuid4

from django.contrib.auth.models import AbstractBaseUser, BaseUserManager, PermissionsMixin
from django.db import models


class People(BaseUserManager["Person"]):
    def create_superuser(self, mail: str, password: str) -> "Person":
        """Make a person who may do everything; Django's command calls this."""
        person = self.model(mail=mail, is_staff=True, is_superuser=True)
        person.set_password(password)
        person.save()
        return person


class Person(AbstractBaseUser, PermissionsMixin):
    key = models.UUIDField(primary_key=True, default=uuid4)
    mail = models.EmailField(unique=True)
    is_staff = models.BooleanField(default=False)
    is_active = models.BooleanField(default=True)

    objects: ClassVar[People] = People()

    USERNAME_FIELD = "mail"

    class Meta:
        app_label = "own_users"
