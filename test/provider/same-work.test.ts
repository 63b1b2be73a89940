/** The amount of work for a refusal does not reveal whether a client exists. */
import crypto from 'node:crypto';
import { syncBuiltinESMExports } from 'node:module';
import { expect } from 'chai';
import { clientCredentials, introspect, postForm, type TestClient } from '../support/oauth.ts';
import { startSeeded } from '../support/seeded.ts';

const COUNTED = ['hash', 'timingSafeEqual'] as const;

/** Returns how often this process calls each function of Node's crypto while `task` runs. */
async function callsDuring(task: () => Promise<unknown>): Promise<Record<string, number>> {
  const originals = { hash: crypto.hash, timingSafeEqual: crypto.timingSafeEqual };
  const calls: Record<string, number> = {};
  for (const name of COUNTED) {
    const original = originals[name] as (...args: unknown[]) => unknown;
    calls[name] = 0;
    Object.assign(crypto, {
      [name]: (...args: unknown[]) => {
        calls[name] = (calls[name] ?? 0) + 1;
        return original(...args);
      },
    });
  }
  syncBuiltinESMExports();
  try {
    await task();
  } finally {
    Object.assign(crypto, originals);
    syncBuiltinESMExports();
  }
  return calls;
}

describe('the work of refusing a client', () => {
  const on = startSeeded();

  const ENDPOINTS: Record<string, (client: TestClient) => Promise<{ status: number }>> = {
    'the token endpoint': (client) => clientCredentials(on.issuer, client),
    introspection: (client) => introspect(on.issuer, client, 'x'),
    'revocation by the client': (client) =>
      postForm(on.issuer, '/oauth/revoke', { token: 'x' }, { client }),
  };
  for (const [endpoint, ask] of Object.entries(ENDPOINTS)) {
    it(`at ${endpoint}, refusing an unknown client takes the same work as refusing a wrong secret`, async () => {
      const secret = `gate_cs_${'x'.repeat(43)}`;
      const known = { ...on.clients.machine, secret };
      const unknown = { ...known, id: `gate_ci_${'x'.repeat(22)}` };
      const works = [];
      for (const client of [known, unknown]) {
        const refused = async (): Promise<void> => {
          expect(await ask(client)).to.include({ status: 401 });
        };
        // Send one request first, because the first one of each client also queries the database.
        await refused();
        works.push(await callsDuring(refused));
      }
      const [work, other] = works;
      expect(work?.hash).to.be.above(0);
      // Expect one comparison for each of the two possible secrets of a client.
      expect(work?.timingSafeEqual).to.be.at.least(2);
      expect(other).to.deep.equal(work);
    });
  }
});
