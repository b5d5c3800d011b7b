"""The only settings file. Everything that differs between installations is an environment variable.

Bad values are refused here by name.
"""

import os
from datetime import timedelta
from pathlib import Path
from zoneinfo import available_timezones

import django

from config.databases import postgresql_settings
from config.env import Environment
from config.logs import logging_settings
from config.sentinel import read_sentinel_options
from config.state import PROJECT, default_state_dir, kept_secret
from jobs.core.conf import RULES, Kind, Rule

env = Environment(os.environ)

# --- where things are -----------------------------------------------------------------------
BASE_DIR = PROJECT
STATE_DIR = Path(env.setting("FAIRSHIFT_STATE_DIR", Rule(default_state_dir(), Kind.FOLDER)))

DATABASE_SCHEMES = ("postgresql", "postgres")
REDIS_SCHEMES = ("redis", "rediss", "redis+socket", "sentinel")

missing_servers = [
    server
    for server, variable in (("postgres", "DATABASE_URL"), ("redis", "REDIS_URL"))
    if not env.has(variable)
]

DEBUG = env.boolean("DEBUG", default="postgres" in missing_servers)
SECRET_KEY = (
    kept_secret(STATE_DIR, "secret_key")
    if DEBUG and not env.has("SECRET_KEY")
    else env.text("SECRET_KEY")
)
ALLOWED_HOSTS = env.words(
    "ALLOWED_HOSTS", default=["localhost", "127.0.0.1", "[::1]"] if DEBUG else []
)
CSRF_TRUSTED_ORIGINS = env.words("CSRF_TRUSTED_ORIGINS")

# --- Fairshift ------------------------------------------------------------------------------
# Only what the environment sets; jobs/core/conf.py has every key, its default and its limits.
FAIRSHIFT = env.section("FAIRSHIFT_", RULES)
FLOWER_URL = env.url("FLOWER_URL", schemes=("http", "https"), default="http://127.0.0.1:5555")

# Read by fleet/alive.py; known here so that a wrong path is refused.
env.setting("FAIRSHIFT_ALIVE_FILE", Rule("", Kind.FOLDER))

# The URL of the demo's device server.
DEMO_DEVICES_URL = env.url(
    "FAIRSHIFT_DEMO_DEVICES_URL", schemes=("http",), default="http://127.0.0.1:8901"
)

# --- PostgreSQL and Redis -------------------------------------------------------------------
if missing_servers:
    # Imported here: with both URLs set, the embedded servers need not be installed.
    from config.embedded import ensure

    embedded_urls = ensure(missing_servers, state_dir=STATE_DIR)
else:
    embedded_urls = {}

DATABASES = {
    "default": postgresql_settings(
        env.url("DATABASE_URL", schemes=DATABASE_SCHEMES, default=embedded_urls.get("postgres"))
    )
    # Django's mark of a pooler that shares connections between transactions.
    | {"DISABLE_SERVER_SIDE_CURSORS": env.boolean("DATABASE_TRANSACTION_POOLER", default=False)}
}
# Only in the web process, see config/databases.py.
WEB_STATEMENT_TIMEOUT_SECONDS = env.setting(
    "WEB_STATEMENT_TIMEOUT_SECONDS", Rule(30, Kind.SECONDS, 0.1, 3600)
)
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
REDIS_URL = env.url("REDIS_URL", schemes=REDIS_SCHEMES, default=embedded_urls.get("redis"))
sentinel_options = read_sentinel_options(env, REDIS_URL)

# --- Django ---------------------------------------------------------------------------------
INSTALLED_APPS = [
    "config",  # manage.py demo and up, which only this project has
    "jobs",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "django_celery_beat",
    "django_celery_results",
    "django_object_actions",
    "ninja",  # static files of the Swagger page
    "axes",
    # Django 6 has a check that asks for it where a model has an array.
    *(["django.contrib.postgres"] if django.VERSION >= (6,) else []),
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "jobs.core.tracing.TraceRequests",
    # Requests with an API token need none of what follows.
    "jobs.api.kit.lean.TokenRequests",
    "csp.middleware.CSPMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "axes.middleware.AxesMiddleware",
]
AUTHENTICATION_BACKENDS = [
    "axes.backends.AxesStandaloneBackend",
    "django.contrib.auth.backends.ModelBackend",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],  # in the wheel they are the app's own
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]
ROOT_URLCONF = "config.urls"
WSGI_APPLICATION = "config.wsgi.application"
ASGI_APPLICATION = "config.asgi.application"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{validator}"}
    for validator in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]
STATIC_URL = "static/"
STATIC_ROOT = STATE_DIR / "static"
# Without collectstatic, files are served from their packages.
WHITENOISE_USE_FINDERS = True

LANGUAGE_CODE = "en"
# The browser's Accept-Language chooses one of them.
LANGUAGES = [("en", "English"), ("de", "Deutsch")]
TIME_ZONE = env.choice(
    "TIME_ZONE",
    allowed=available_timezones(),
    default="UTC",
    what="an IANA time zone such as Europe/Paris",
)
USE_I18N = True
USE_TZ = True

LOG_FORMAT = env.choice(
    "LOG_FORMAT", allowed=("console", "json"), default="console" if DEBUG else "json"
)
LOG_LEVEL = env.choice(
    "LOG_LEVEL", allowed=("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"), default="INFO"
)
LOGGING = logging_settings(form=LOG_FORMAT, level=LOG_LEVEL)

# --- security -------------------------------------------------------------------------------
SECURE_COOKIES = env.boolean("SECURE_COOKIES", default=not DEBUG)
SESSION_COOKIE_SECURE = SECURE_COOKIES
CSRF_COOKIE_SECURE = SECURE_COOKIES
SESSION_COOKIE_HTTPONLY = True
SECURE_SSL_REDIRECT = env.boolean("SECURE_SSL_REDIRECT", default=False)
# Asked by programs on the inner network, past the proxy.
SECURE_REDIRECT_EXEMPT = [r"^metrics$", r"^health/"]
SECURE_HSTS_SECONDS = env.setting("SECURE_HSTS_SECONDS", Rule(0, Kind.WHOLE, 0, 2 * 365 * 86_400))
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_SECONDS > 0
# Only behind a proxy that sets this header: otherwise any client could set it.
SECURE_PROXY_SSL_HEADER = (
    ("HTTP_X_FORWARDED_PROTO", "https") if env.boolean("BEHIND_TLS_PROXY", default=False) else None
)
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
# Scripts and styles are files, never inline.
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'self'"],
        # The style sheet of Swagger UI has its icons in it.
        "img-src": ["'self'", "data:"],
        "object-src": ["'none'"],
        "base-uri": ["'none'"],
        "form-action": ["'self'"],
        "frame-ancestors": ["'none'"],
    }
}
# Locks a name at an address, or an address that tries many names. By name alone, anyone could lock
# a person out.
AXES_LOCKOUT_PARAMETERS = "config.logins.lockout_parameters"
AXES_FAILURE_LIMIT = 10
AXES_COOLOFF_TIME = timedelta(minutes=15)
AXES_RESET_COOL_OFF_ON_FAILURE_DURING_LOCKOUT = False
AXES_RESET_ON_SUCCESS = True
AXES_DISABLE_ACCESS_LOG = True
AXES_ENABLE_ADMIN = False
AXES_VERBOSE = False

# --- mail ----------------------------------------------------------------------------------
# Without a host, mails are printed: of no use but to see them.
EMAIL_HOST = env.text("EMAIL_HOST", default="")
EMAIL_BACKEND = f"django.core.mail.backends.{'smtp' if EMAIL_HOST else 'console'}.EmailBackend"
EMAIL_PORT = env.setting("EMAIL_PORT", Rule(587, Kind.WHOLE, 1, 65_535))
EMAIL_HOST_USER = env.text("EMAIL_HOST_USER", default="")
EMAIL_HOST_PASSWORD = env.text("EMAIL_HOST_PASSWORD", default="")
EMAIL_USE_TLS = env.boolean("EMAIL_USE_TLS", default=True)
EMAIL_TIMEOUT = 15
DEFAULT_FROM_EMAIL = env.text("DEFAULT_FROM_EMAIL", default="fairshift@localhost")

# --- Celery ---------------------------------------------------------------------------------
# jobs/celery_setup.py has Fairshift's defaults.
CELERY_BROKER_URL = REDIS_URL
CELERY_BROKER_TRANSPORT_OPTIONS = dict(sentinel_options)
if env.boolean("FAIRSHIFT_ALLOW_UNTESTED_VERSIONS", default=False):
    CELERY_BROKER_TRANSPORT_OPTIONS["allow_untested_versions"] = True
CELERY_TASK_IGNORE_RESULT = True
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
# Modules with Celery tasks that autodiscovery does not find.
CELERY_IMPORTS = env.words("FAIRSHIFT_TASKS")

env.refuse_unknown("FAIRSHIFT_")
