import { CodeChallengeMethod } from 'google-auth-library';
import { client } from './documented.mjs';
import { approve, report } from './driving.mjs';

const { codeVerifier, codeChallenge } = await client.generateCodeVerifierAsync();
const url = client.generateAuthUrl({
  state: 'some state',
  code_challenge: codeChallenge,
  code_challenge_method: CodeChallengeMethod.S256,
});
const callback = await approve(url);
const { tokens } = await client.getToken({ code: callback.searchParams.get('code'), codeVerifier });
client.setCredentials(tokens);
await report('connected', tokens.access_token, tokens.refresh_token);
let stored;
client.on('tokens', (answer) => {
  stored = answer.refresh_token;
});
// As calls of an API do it, once the access token has expired.
for (let hour = 1; hour <= 2; hour += 1) {
  client.credentials.expiry_date = 1;
  const { token } = await client.getAccessToken();
  await report('refreshed', token, stored);
}
process.exit();
