from documented import client, request
from driving import approve, report

answer = request.validate_callback(approve(request.uri))
first = client.authorization_code(answer)
report('connected', first.access_token, first.refresh_token)
second = client.refresh_token(first)
report('refreshed', second.access_token, second.refresh_token)
assert client.revoke_refresh_token(second)
report('revoked', second.access_token, second.refresh_token)
