"""What the programs of all Python libraries share: the talk with the test, and a Django project."""
import json
import os
import sys
from urllib.parse import urlsplit


def ask(**question):
    print(json.dumps(question), flush=True)
    return sys.stdin.readline().strip()


def approve(address):
    """Lets the test's person approve, and returns the callback."""
    return ask(open=address)


def report(step, access_token, refresh_token):
    """Lets the test check the result of a step."""
    ask(step=step, accessToken=access_token, refreshToken=refresh_token)


def django_client(apps, middleware=(), **settings):
    """Starts a Django project with these apps, and returns a browser for its pages."""
    import django
    from django.conf import settings as configured
    from django.core.management import call_command
    from django.test import Client

    configured.configure(
        ALLOWED_HOSTS=['*'],
        DATABASES={'default': {'ENGINE': 'django.db.backends.sqlite3', 'NAME': ':memory:'}},
        MIDDLEWARE=[
            'django.contrib.sessions.middleware.SessionMiddleware',
            'django.contrib.auth.middleware.AuthenticationMiddleware',
            'django.contrib.messages.middleware.MessageMiddleware',
            *middleware,
        ],
        INSTALLED_APPS=['django.contrib.auth', 'django.contrib.contenttypes', 'django.contrib.sessions', 'django.contrib.messages', *apps],
        LOGIN_REDIRECT_URL='/',
        ROOT_URLCONF=settings.pop('urls'),
        SECRET_KEY='not a secret',
        TEMPLATES=[{'BACKEND': 'django.template.backends.django.DjangoTemplates', 'APP_DIRS': True, 'OPTIONS': {'context_processors': ['django.template.context_processors.request']}}],
        **settings,
    )
    django.setup()
    call_command('migrate', verbosity=0)
    return Client(headers={'host': urlsplit(os.environ['REDIRECT_URI']).netloc})


def connect(browser, address):
    """Opens the address with POST, approves, and opens the callback."""
    begun = browser.post(address)
    callback = urlsplit(approve(begun['location']))
    answer = browser.get(f'{callback.path}?{callback.query}')
    assert answer.status_code == 302 and answer['location'] == '/', (answer, answer.content)
