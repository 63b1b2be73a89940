/** A provider reports a sign-out (OpenID Connect Back-Channel Logout 1.0). */
import { expect } from 'chai';
import type { JWTPayload } from 'jose';
import type { Account } from '../../src/accounts/account.ts';
import { createSessionList } from '../../src/accounts/session-list.ts';
import { eventually } from '../support/eventually.ts';
import { onPostgresAndRedis } from '../support/service.ts';
import type { Traveller } from '../support/upstream.ts';
import { GRACE, startWithUpstream, type WithUpstream } from './service.ts';

const EVENT = { 'http://schemas.openid.net/event/backchannel-logout': {} };
let tokenCount = 0;

/** Helpers of the suites, for a service with a provider. */
function actions(on: WithUpstream) {
  return {
    /** Signs in in a new browser, with this session id of the provider. */
    async signInSession(sid: string | undefined): Promise<Traveller> {
      on.upstream.lie = { claims: (claims) => ({ ...claims, ...(sid !== undefined && { sid }) }) };
      const person = on.traveller();
      expect((await on.signIn(GRACE, person)).html).to.include('Grace Person');
      on.upstream.lie = {};
      return person;
    },
    isSignedIn: async (person: Traveller): Promise<boolean> => (await person.get('/profile')).status === 200,
    async tokenOf(claims: Record<string, unknown>, type: string | undefined = 'logout+jwt'): Promise<string> {
      const now = Math.floor(on.clock.clock() / 1000);
      tokenCount += 1;
      const usual = {
        iss: on.upstream.issuer,
        aud: 'gatehouse',
        iat: now,
        exp: now + 120,
        jti: `token ${tokenCount}`,
        events: EVENT,
      };
      return on.upstream.sign({ ...usual, ...claims } as JWTPayload, { type });
    },
    notify: (logout_token: string) =>
      fetch(`${on.service.issuer}/login/platform/backchannel-logout`, {
        method: 'POST',
        body: new URLSearchParams({ logout_token }),
      }),
  };
}

onPostgresAndRedis('a sign-out at a provider', (start) => {
  const on = startWithUpstream({ start });
  const { signInSession, isSignedIn, tokenOf, notify } = actions(on);

  it('a logout token ends the session that belongs to it, and no other', async () => {
    const [here, elsewhere] = [await signInSession('s1'), await signInSession('s2')];
    const typed = on.traveller();
    await typed.signIn(on.seeded.person);
    const answer = await notify(await tokenOf({ sub: GRACE.sub, sid: 's1' }));
    expect(answer.status, await answer.text()).to.equal(200);
    expect(answer.headers.get('cache-control')).to.equal('no-store');
    expect(await Promise.all([here, elsewhere, typed].map(isSignedIn))).to.deep.equal([false, true, true]);
    // A token without a session id ends all sessions from this provider, but no password session.
    expect((await notify(await tokenOf({ sub: GRACE.sub }))).status).to.equal(200);
    expect(await Promise.all([elsewhere, typed].map(isSignedIn))).to.deep.equal([false, true]);
    const [last] = await on.service.activity.of(on.seeded.person.accountId, { limit: 1 });
    expect(last).to.deep.include({ action: 'signed_out_upstream', actor: 'service' });
  });

  it('a logout token that arrives during a confirmation with a password prevents the confirmed action', async () => {
    const person = await signInSession('s7');
    on.clock.advance(601);
    const keys = () => on.service.apiKeys.listOf(on.seeded.person.accountId);
    const { length } = await keys();
    const asked = await person.submit(await person.get('/profile/api-keys'), { name: 'Late' });
    // End the session in the database, as another node does when it receives the logout token.
    await on.service.database.query(
      `UPDATE browser_sessions s SET ended_at = begun_at
        FROM session_providers p WHERE p.uid = s.uid AND sid = $1`,
      ['s7'],
    );
    const { password } = on.seeded.person;
    const answer = await person.submit(asked, { current_password: password });
    expect(answer.location?.pathname).to.equal('/login');
    expect(await keys()).to.have.lengthOf(length);
  });

  it('a logout token is accepted once: the second time it ends no session', async () => {
    const token = await tokenOf({ sub: GRACE.sub });
    expect((await notify(token)).status).to.equal(200);
    const person = await signInSession('s4');
    expect((await notify(token)).status).to.equal(400);
    expect(await isSignedIn(person)).to.equal(true);
  });

  it('a back-channel logout is accepted only with a valid logout token', async () => {
    const person = await signInSession('s5');
    const about = { sub: GRACE.sub, sid: 's5' };
    const now = Math.floor(on.clock.clock() / 1000);
    const wrong: Readonly<Record<string, string>> = {
      'no token': 'x',
      'another issuer': await tokenOf({ ...about, iss: 'https://evil.example' }),
      'another client': await tokenOf({ ...about, aud: 'other' }),
      'an ID token': await tokenOf({ ...about, events: undefined }),
      'another event': await tokenOf({ ...about, events: { 'urn:x': {} } }),
      'a nonce': await tokenOf({ ...about, nonce: 'n' }),
      'no token id': await tokenOf({ ...about, jti: undefined }),
      'no subject': await tokenOf({}),
      'no time': await tokenOf({ ...about, iat: undefined }),
      'no expiry': await tokenOf({ ...about, exp: undefined }),
      'the past': await tokenOf({ ...about, iat: now - 700, exp: now + 60 }),
      'the future': await tokenOf({ ...about, iat: now + 90, exp: now + 120 }),
      'an expiry in ten years': await tokenOf({ ...about, exp: now + 10 * 365 * 86_400 }),
      'a number as session': await tokenOf({ ...about, sid: 5 }),
      'expired a minute ago': await tokenOf({ ...about, exp: now - 61 }),
      'another token type': await tokenOf(about, 'at+jwt'),
      'a forged signature': `${(await tokenOf(about)).slice(0, -20)}${'A'.repeat(20)}`,
      'no signature': `${Buffer.from('{"alg":"none"}').toString('base64url')}.${(await tokenOf(about)).split('.')[1]}.`,
    };
    for (const [what, token] of Object.entries(wrong)) {
      const answer = await notify(token);
      expect(answer.status, what).to.equal(400);
      expect(await answer.json(), what).to.include({ error: 'invalid_request' });
    }
    expect(await isSignedIn(person)).to.equal(true);
    expect((await notify(await tokenOf(about))).status).to.equal(200);
    expect(await isSignedIn(person)).to.equal(false);
  });

  it('five minutes after the provider withdrew a key, logout tokens signed with it are refused', async () => {
    const person = await signInSession('s8');
    const exp = Math.floor(on.clock.clock() / 1000) + 600;
    // The provider's keys are cached from now on.
    expect((await notify(await tokenOf({ sid: 'no session' }))).status).to.equal(200);
    const stolen = await tokenOf({ sid: 's8', exp });
    await on.upstream.rotateKeys();
    on.clock.advance(301);
    expect((await notify(stolen)).status).to.equal(400);
    expect(await isSignedIn(person)).to.equal(true);
    expect((await notify(await tokenOf({ sid: 's8' }))).status).to.equal(200);
    expect(await isSignedIn(person)).to.equal(false);
  });

  for (const claims of [{ sub: GRACE.sub }, { sid: 's9' }]) {
    for (const moment of ['before', 'after'] as const) {
      it(`a logout token with ${Object.keys(claims)} leaves no session, if it arrives just ${moment} this is recorded`, async () => {
        const { sessionList } = on.service;
        const { record } = sessionList;
        sessionList.record = async (...about) => {
          sessionList.record = record;
          const isRecorded = moment === 'before' || (await record(...about));
          expect((await notify(await tokenOf(claims))).status).to.equal(200);
          return moment === 'before' ? record(...about) : isRecorded;
        };
        on.upstream.lie = { claims: (sent) => ({ ...sent, sid: 's9' }) };
        const person = on.traveller();
        const { status } = await on.signIn(GRACE, person);
        expect([status, await isSignedIn(person)]).to.deep.equal([moment === 'before' ? 403 : 200, false]);
        const [last] = await on.service.activity.of(on.seeded.person.accountId, { limit: 1 });
        expect(last?.action === 'signed_in').to.equal(moment === 'after');
        // The next sign-in is later than the sign-out.
        expect(await isSignedIn(await signInSession('s9'))).to.equal(true);
      });
    }
  }

  it('logout tokens that cannot be recorded wait with one connection, and all are refused after the time of a few', async () => {
    const { database } = on.service;
    const { query } = database;
    let tries = 0;
    database.query = (text, ...values) => {
      if (text.includes('INSERT INTO logout_tokens')) tries += 1;
      return query(text, ...values);
    };
    const tokens = await Promise.all(Array.from({ length: 20 }, (_, one) => tokenOf({ sid: `waits ${one}` })));
    try {
      await database.transaction(async (tx) => {
        await tx.query('LOCK TABLE logout_tokens');
        let isAnswered = false;
        const all = Promise.all(tokens.map(notify)).finally(() => {
          isAnswered = true;
        });
        // A transaction that does nothing would be ended.
        while (!isAnswered) await tx.query('SELECT pg_sleep(0.1)');
        const statuses = (await all).map(({ status }) => status);
        expect([new Set(statuses), tries < 10]).to.deep.equal([new Set([503]), true]);
      });
    } finally {
      database.query = query;
    }
    expect((await notify(tokens[0] ?? '')).status).to.equal(200);
  });

  it('a logout token that is slow to commit ends a sign-in that began meanwhile, even if another node recorded a later one quickly', async () => {
    const { database, sessionList } = on.service;
    await database.query(`CREATE FUNCTION stall() RETURNS trigger LANGUAGE plpgsql AS
      $$ BEGIN PERFORM pg_advisory_xact_lock(1); RETURN NULL; END $$`);
    await database.query(`CREATE CONSTRAINT TRIGGER stall AFTER INSERT ON logout_tokens
      DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.sid = 's10') EXECUTE FUNCTION stall()`);
    const waiting = async () => {
      const waits = "locktype = 'advisory' AND NOT granted AND database = (SELECT oid FROM pg_database";
      const rows = await database.query(`SELECT FROM pg_locks WHERE ${waits} WHERE datname = current_database())`);
      return rows.length;
    };
    const release = Promise.withResolvers<void>();
    const held = database.transaction(async (tx) => {
      await tx.query('SELECT pg_advisory_xact_lock(1)');
      await release.promise;
    });
    const { latestLogout } = sessionList;
    try {
      const slow = notify(await tokenOf({ sid: 's10' }));
      await eventually(async () => expect(await waiting()).to.equal(1));
      let isRecorded = false;
      const about = {
        issuer: on.upstream.issuer,
        subject: undefined,
        sid: 'no session',
        token: { id: 'later', seconds: 60 },
      };
      const later = createSessionList({ database })
        .endAtProvider(about, async () => {})
        .finally(() => {
          isRecorded = true;
        });
      // Awaited below, after what may fail before it.
      later.catch(() => undefined);
      await eventually(async () => expect(isRecorded || (await waiting()) === 2).to.equal(true));
      sessionList.latestLogout = async () => {
        const latest = await latestLogout();
        release.resolve();
        await held;
        expect((await slow).status).to.equal(200);
        return latest;
      };
      on.upstream.lie = { claims: (sent) => ({ ...sent, sid: 's10' }) };
      const person = on.traveller();
      const { status } = await on.signIn(GRACE, person);
      await later;
      expect([status, await isSignedIn(person)]).to.deep.equal([403, false]);
    } finally {
      sessionList.latestLogout = latestLogout;
      on.upstream.lie = {};
      release.resolve();
      await held;
      await database.query('DROP FUNCTION stall CASCADE');
    }
  });
});

onPostgresAndRedis('a session that is ended while it ends all others', (start) => {
  const on = startWithUpstream({ start });
  const { signInSession, isSignedIn, tokenOf, notify } = actions(on);

  /**
   * Signs out everywhere else; once all sessions have ended, and before this one continues, the action happens.
   *
   * @param inBetween if it returns an account, the request continues with that, as if it had read it later
   */
  async function signOutEverywhere(person: Traveller, inBetween: () => Promise<Account | undefined>): Promise<void> {
    const { accounts } = on.service;
    const { endSessions } = accounts;
    accounts.endSessions = async (...about) => {
      accounts.endSessions = endSessions;
      const account = await endSessions(...about);
      return (await inBetween()) ?? account;
    };
    const page = await person.get('/profile/security');
    const form = page.forms.find(({ action }) => action.endsWith('/sign-out-everywhere'));
    await person.post(form?.action ?? '', Object.fromEntries(form?.values ?? []));
    expect(accounts.endSessions).to.equal(endSessions);
  }

  it('a sign-out at the provider ends it', async () => {
    const person = await signInSession('t1');
    await signOutEverywhere(person, async () => void (await notify(await tokenOf({ sid: 't1' }))));
    expect(await isSignedIn(person)).to.equal(false);
  });

  it('a sign-out from elsewhere ends it', async () => {
    const person = await signInSession('t2');
    const [session] = await on.service.database.query<{ uid: string }>(
      "SELECT uid FROM session_providers WHERE sid = 't2'",
    );
    let isEnded = false;
    await signOutEverywhere(person, async () => {
      isEnded = await on.service.sessionList.end(on.seeded.person.accountId, session?.uid ?? '', async () => {});
    });
    expect([isEnded, await isSignedIn(person)]).to.deep.equal([true, false]);
  });

  it('another end of all sessions ends it, also if the request reads the account only then', async () => {
    const end = () => on.service.accounts.endSessions(on.seeded.person.accountId);
    for (const inBetween of [end, async () => void (await end())]) {
      const person = await signInSession('t3');
      await signOutEverywhere(person, inBetween);
      expect(await isSignedIn(person)).to.equal(false);
    }
  });

  it('if it has already ended, it does not end the others', async () => {
    const [person, other] = [await signInSession('t4'), await signInSession('t5')];
    const { accounts } = on.service;
    const { endSessions } = accounts;
    // The request waits for its turn while the other browser ends all sessions.
    accounts.endSessions = async (...about) => {
      accounts.endSessions = endSessions;
      await signOutEverywhere(other, async () => {});
      return endSessions(...about);
    };
    const page = await person.get('/profile/security');
    const form = page.forms.find(({ action }) => action.endsWith('/sign-out-everywhere'));
    await person.post(form?.action ?? '', Object.fromEntries(form?.values ?? []));
    expect(await Promise.all([person, other].map(isSignedIn))).to.deep.equal([false, true]);
  });
});

describe('invalid logout tokens', () => {
  const on = startWithUpstream({ settings: { limits: { clientFailuresPerAddress: 3 } } });
  const { signInSession, isSignedIn, tokenOf, notify } = actions(on);

  it('invalid logout tokens are limited per address, and a valid one still ends its session', async () => {
    const person = await signInSession('s1');
    for (let times = 0; times < 3; times += 1) expect((await notify('wrong')).status).to.equal(400);
    const answer = await notify('wrong');
    expect(answer.status).to.equal(429);
    expect(Number(answer.headers.get('retry-after'))).to.be.within(1, 3_600);
    expect((await notify(await tokenOf({ sid: 's1' }))).status).to.equal(200);
    expect(await isSignedIn(person)).to.equal(false);
  });
});

describe('a sign-out at a provider that ends connections', () => {
  const on = startWithUpstream({ provider: { endConnections: true } });
  const { signInSession, tokenOf, notify } = actions(on);

  const left = async (id: string) => (await on.service.connections.listOf(id)).length;

  /** Connects a client with two users. @returns the browser of Grace, who signed in with the provider. */
  async function connected(sid: string): Promise<Traveller> {
    const { confidential } = on.seeded.clients;
    const person = await signInSession(sid);
    const other = on.traveller();
    for (const [browser, who] of [
      [person, on.seeded.person],
      [other, on.seeded.other],
    ] as const) {
      const url = new URL('/oauth/authorize', on.service.issuer);
      url.search = `${new URLSearchParams({
        response_type: 'code',
        client_id: confidential.id,
        state: 's',
        redirect_uri: confidential.redirectUri,
      })}`;
      await browser.authorize(url, who);
    }
    return person;
  }

  it('a sign-out at the provider disconnects all clients of the user, and of no other user', async () => {
    await connected('s1');
    await notify(await tokenOf({ sid: 's1' }));
    expect(await left(on.seeded.person.accountId)).to.equal(0);
    expect(await left(on.seeded.other.accountId)).to.equal(1);
  });

  it('it also does if the session was signed out from elsewhere before, and is recorded', async () => {
    const { accountId } = on.seeded.person;
    await connected('s2');
    const [session] = await on.service.database.query<{ uid: string }>(
      "SELECT uid FROM session_providers WHERE sid = 's2'",
    );
    expect(await on.service.sessionList.end(accountId, session?.uid ?? '', async () => {})).to.equal(true);
    await notify(await tokenOf({ sid: 's2' }));
    expect(await left(accountId)).to.equal(0);
    const recorded = await on.service.activity.of(accountId, { limit: 2 });
    expect(recorded.map(({ action }) => action)).to.deep.equal(['disconnected', 'signed_out_upstream']);
  });

  it('a sign-out at the provider disconnects nothing once the user has removed the link', async () => {
    const { accountId } = on.seeded.person;
    const person = await connected('s3');
    const connections = await left(accountId);
    await on.service.database.query('DELETE FROM account_identities WHERE account_id = $1', [accountId]);
    for (const claims of [{ sid: 's3' }, { sub: GRACE.sub }]) {
      expect((await notify(await tokenOf(claims))).status).to.equal(200);
    }
    expect(connections).to.be.above(0);
    expect(await left(accountId)).to.equal(connections);
    expect((await person.get('/profile')).status).to.equal(303);
  });
});
