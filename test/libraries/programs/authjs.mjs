import { Auth } from '@auth/core';
import { provider } from './documented.mjs';
import { createBrowser, report, serve } from './driving.mjs';

let account;
const connected = () => new Response('connected');
await serve((request) =>
  new URL(request.url).pathname === '/'
    ? connected()
    : Auth(request, {
        secret: 'not a secret',
        trustHost: true,
        basePath: '/auth',
        providers: [provider],
        callbacks: {
          jwt(given) {
            account ??= given.account;
            return given.token;
          },
        },
      }),
);
const open = createBrowser();
const { csrfToken } = await (await open('/auth/csrf')).json();
const body = new URLSearchParams({ csrfToken });
await open('/auth/signin/gatehouse', { method: 'POST', body });
await report('connected', account.access_token, account.refresh_token);
process.exit();
