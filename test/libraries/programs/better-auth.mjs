import { auth } from './documented.mjs';
import { approve, createBrowser, report, serve } from './driving.mjs';

await serve(async (request) =>
  new URL(request.url).pathname === '/' ? new Response('connected') : auth.handler(request),
);
const open = createBrowser();
const post = async (path, body) => {
  const headers = { 'content-type': 'application/json' };
  const response = await open(path, { method: 'POST', headers, body: JSON.stringify(body) });
  return response.json();
};
const { url } = await post('/api/auth/sign-in/social', { provider: 'gatehouse', callbackURL: '/' });
await open(await approve(url));
const [{ id: accountId }] = await (await open('/api/auth/list-accounts')).json();
const first = await post('/api/auth/get-access-token', { accountId });
await report('connected', first.accessToken);
const second = await post('/api/auth/refresh-token', { accountId });
await report('refreshed', second.accessToken, second.refreshToken);
process.exit();
