import express from 'express';
import next from 'next-auth';
import { provider } from './documented.mjs';
import { createBrowser, origin, port, report } from './driving.mjs';

const app = express();
let account;
const options = {
  secret: 'not a secret',
  providers: [provider],
  callbacks: {
    jwt(given) {
      account ??= given.account;
      return given.token;
    },
  },
};
// Next.js fills these three properties of a request.
const { default: handler } = next;
app.use('/api/auth', express.urlencoded(), (request, response) => {
  const query = { ...request.query, nextauth: request.path.split('/').slice(1) };
  const pairs = (request.headers.cookie ?? '').split('; ').map((pair) => pair.split('='));
  const cookies = Object.fromEntries(pairs.map(([name, value = '']) => [name, decodeURIComponent(value)]));
  const { body = {}, headers, method } = request;
  return (handler ?? next)({ query, cookies, body, headers, method }, response, options);
});
app.get('/', (_request, response) => response.send('connected'));
process.env.NEXTAUTH_URL = origin;
await new Promise((resolve) => app.listen(port, '127.0.0.1', resolve));
const open = createBrowser();
const { csrfToken } = await (await open('/api/auth/csrf')).json();
const body = new URLSearchParams({ csrfToken });
await open('/api/auth/signin/gatehouse', { method: 'POST', body });
await report('connected', account.access_token, account.refresh_token);
process.exit();
