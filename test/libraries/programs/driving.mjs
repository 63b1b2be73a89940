/** What the programs of all libraries share: the talk with the test, and a browser with cookies. */
import { createInterface } from 'node:readline';

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
export const { ISSUER: issuer, REDIRECT_URI: redirectUri } = process.env;
export const { origin, port } = new URL(redirectUri);

async function ask(question) {
  console.log(JSON.stringify(question));
  return (await lines.next()).value;
}

/** Lets the test's person approve. @returns the callback */
export const approve = async (address) => new URL(await ask({ open: String(address) }));

/** Lets the test check what a step has led to. */
export const report = (step, accessToken, refreshToken) => ask({ step, accessToken, refreshToken });

/**
 * Returns a function that opens addresses of the app like one browser: with cookies, through
 * redirects, and with an approval at the service.
 */
export function createBrowser() {
  const cookies = new Map();
  return async function open(address, init = {}) {
    const cookie = [...cookies].map((pair) => pair.join('=')).join('; ');
    const headers = { ...init.headers, cookie, origin };
    const response = await fetch(new URL(address, origin), {
      ...init,
      headers,
      redirect: 'manual',
    });
    for (const line of response.headers.getSetCookie()) {
      const [, name, value] = /^([^=]+)=([^;]*)/.exec(line);
      cookies.set(name, value);
    }
    const location = response.headers.get('location');
    if (location !== null && response.status < 400 && response.status >= 300) {
      const target = new URL(location, response.url);
      return open(target.origin === origin ? target : await approve(target));
    }
    if (response.ok) return response;
    throw new Error(`${response.url}: ${response.status} ${await response.text()}`);
  };
}

/** Serves a function from `Request` to `Response` at the origin of the redirect URI. */
export async function serve(respond) {
  const { createServer } = await import('node:http');
  const server = createServer(async (incoming, outgoing) => {
    const body = incoming.method === 'POST' ? await incoming.toArray() : [];
    const init = { method: incoming.method, headers: incoming.headers };
    if (body.length > 0) init.body = Buffer.concat(body);
    const response = await respond(new Request(new URL(incoming.url, origin), init));
    outgoing.statusCode = response.status;
    for (const [name, value] of response.headers) outgoing.appendHeader(name, value);
    outgoing.end(await response.text());
  });
  await new Promise((resolve) => server.listen(port, '127.0.0.1', resolve));
}
