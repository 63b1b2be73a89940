/** Requests of the service to itself do not depend on DNS or on a proxy in front of the issuer. */
import { createServer, type RequestListener } from 'node:http';
import { text } from 'node:stream/consumers';
import { expect } from 'chai';
import { pino } from 'pino';
import { createOwnRequests } from '../../src/host/own-requests.ts';

describe('requests of the service to itself', () => {
  const seen: string[] = [];
  const handler: RequestListener = async (request, response) => {
    const { method, url, headers } = request;
    seen.push(`${method} ${headers.host}${url} ${headers['content-type']} ${await text(request)}`);
    response.writeHead(401).end('no');
  };

  it('the service can send requests to its own issuer, even if DNS does not know the issuer', async () => {
    const issuer = 'https://auth.nowhere.example';
    const postForm = createOwnRequests({
      issuer,
      log: pino({ level: 'silent' }),
      handler: () => handler,
    });
    const form = { grant_type: 'refresh_token', refresh_token: 'a b&c=é' };
    expect(await postForm('/oauth/token', form)).to.deep.equal({ status: 401, body: 'no' });
    expect(seen).to.deep.equal([
      'POST auth.nowhere.example/oauth/token application/x-www-form-urlencoded ' +
        'grant_type=refresh_token&refresh_token=a+b%26c%3D%C3%A9',
    ]);
  });

  it('requests of the service to itself leave no listening port open', async () => {
    const addresses: unknown[] = [];
    const postForm = createOwnRequests({
      issuer: 'http://localhost:3000',
      log: pino({ level: 'silent' }),
      handler: () => (request, response) => {
        addresses.push({ port: request.socket.localPort, host: request.socket.localAddress });
        response.end();
      },
    });
    await Promise.all([postForm('/', {}), postForm('/', {})]);
    expect(addresses).to.have.length(2);
    for (const address of addresses) {
      // Listening succeeds only if the address is free again.
      const server = createServer().listen(address as { port: number; host: string });
      await new Promise((resolve, reject) => {
        server.on('listening', resolve).on('error', reject);
      });
      await new Promise((resolve) => server.close(resolve));
    }
  });
});
