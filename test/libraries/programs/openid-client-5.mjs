import { generators } from 'openid-client';
import { authorize, client, exchange } from './documented.mjs';
import { approve, report } from './driving.mjs';

const verifier = generators.codeVerifier();
const state = generators.state();
const callback = await approve(authorize(state, generators.codeChallenge(verifier)));
const first = await exchange(callback.href, { state, code_verifier: verifier });
await report('connected', first.access_token, first.refresh_token);
const second = await client.refresh(first.refresh_token);
await report('refreshed', second.access_token, second.refresh_token);
await client.revoke(second.refresh_token);
await report('revoked', second.access_token, second.refresh_token);
process.exit();
