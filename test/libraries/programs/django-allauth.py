from django.urls import include, path

import documented
from driving import connect, django_client, report

browser = django_client(
    ['allauth', 'allauth.account', 'allauth.socialaccount', 'gatehouse_login'],
    ['allauth.account.middleware.AccountMiddleware'],
    urls=__name__,
    ACCOUNT_EMAIL_VERIFICATION='none',
    AUTHENTICATION_BACKENDS=['allauth.account.auth_backends.AuthenticationBackend'],
    **{name: getattr(documented, name) for name in dir(documented) if name.startswith('SOCIAL')},
)
urlpatterns = [path('', include('allauth.urls'))]
connect(browser, '/gatehouse/login/')

from allauth.socialaccount.models import SocialToken

token = SocialToken.objects.get()
report('connected', token.token, token.token_secret)
