"""Settings of every environment."""

from kombu import Exchange, Queue

SECRET_KEY = "lived-in"
ALLOWED_HOSTS = ["localhost"]
USE_TZ = True
TIME_ZONE = "Europe/Berlin"
ROOT_URLCONF = "crm.urls"
AUTH_USER_MODEL = "people.Person"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
STATIC_URL = "static/"
INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django_celery_beat",
    "django_celery_results",
    "crm.people",
    "crm.billing",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]

CELERY_TIMEZONE = TIME_ZONE
CELERY_TASK_QUEUES = [
    Queue(name, Exchange(name), routing_key=name) for name in ("celery", "mail", "reports")
]
CELERY_TASK_ROUTES = {
    "crm.billing.tasks.remind": {"queue": "mail"},
    "crm.billing.tasks.report*": {"queue": "reports"},
}
CELERY_TASK_TIME_LIMIT = 60
CELERY_TASK_TRACK_STARTED = True
CELERY_WORKER_MAX_TASKS_PER_CHILD = 50
CELERY_RESULT_EXPIRES = 3600
