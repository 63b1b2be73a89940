from django.urls import include, path

from driving import connect, django_client, report
from gatehouse import CLIENT_ID, CLIENT_SECRET

browser = django_client(
    ['social_django'],
    urls=__name__,
    AUTHENTICATION_BACKENDS=['documented.Gatehouse'],
    SOCIAL_AUTH_GATEHOUSE_KEY=CLIENT_ID,
    SOCIAL_AUTH_GATEHOUSE_SECRET=CLIENT_SECRET,
)
urlpatterns = [path('', include('social_django.urls', namespace='social'))]
connect(browser, '/login/gatehouse/')

from social_django.models import UserSocialAuth
from social_django.utils import load_strategy

account = UserSocialAuth.objects.get()
report('connected', account.extra_data['access_token'], account.extra_data['refresh_token'])
account.refresh_token(load_strategy())
data = UserSocialAuth.objects.get().extra_data
report('refreshed', data['access_token'], data['refresh_token'])
backend = account.get_backend_instance(load_strategy())
assert backend.revoke_token(data['access_token'], account.uid)
report('revoked', data['access_token'], data['refresh_token'])
