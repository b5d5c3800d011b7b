from typing import ClassVar
from uuid import uuid4

from django.contrib.auth.models import AbstractBaseUser, BaseUserManager, PermissionsMixin
from django.db import models


class Person(AbstractBaseUser, PermissionsMixin):
    """Logs in with an e-mail address."""

    id = models.UUIDField(primary_key=True, default=uuid4)
    email = models.EmailField(unique=True)
    is_staff = models.BooleanField(default=False)

    objects: ClassVar[BaseUserManager["Person"]] = BaseUserManager()

    USERNAME_FIELD = "email"
