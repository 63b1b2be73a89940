/** Every action that ends access: what it ends, what stays valid, and what can be restored. */
import { expect } from 'chai';
import { operatorFor, valueFrom } from '../operator/run-operator.ts';
import { signedIn } from '../pages/signed-in-person.ts';
import { tokensOf } from '../provider/partner-tokens.ts';
import { confirmAt } from '../sandbox/called-api.ts';
import { eventually } from '../support/eventually.ts';
import {
  clientCredentials,
  exchangeCode,
  postForm,
  refresh,
  revokeCurrent,
  type TestClient,
} from '../support/oauth.ts';
import { startSeeded } from '../support/seeded.ts';
import type { Start } from '../support/service.ts';
import { type Apis, type Check, HELD, type HeldName, type Holdings, hold, openApis, type Timing } from './holdings.ts';

const CONNECTION = ['authorization', 'second authorization', 'code'] as const;
const KEYS = ['API key', 'second API key'] as const;
const MACHINE = ['machine token', 'second machine token'] as const;
const BROWSERS = ['browser', 'second browser'] as const;
const PERSON = [...CONNECTION, 'authorization of another client', ...KEYS, ...BROWSERS] as const;
const CLIENT = [...CONNECTION, 'authorization of another person'] as const;

interface End {
  readonly end: (held: Holdings) => Promise<unknown>;
  /** The credentials that end; all others stay valid. */
  readonly ends?: readonly HeldName[];
  /** The credentials that stay valid, but give access to no organization any more. */
  readonly empties?: readonly HeldName[];
  /** Undoes the action, which makes valid again what `staysEnded` does not name. */
  readonly undo?: (held: Holdings) => Promise<unknown>;
  /** What `undo` does not bring back. */
  readonly staysEnded?: readonly HeldName[];
  /** True if the end is in force at every node when the request is answered, not a moment later. */
  readonly isShared?: boolean;
  /** True if another process makes the change: every node learns of it a moment later. */
  readonly isElsewhere?: boolean;
  /** True if the approval stays, and the client continues with the new secret that the command prints. */
  readonly isRenewal?: true;
  /** True if the user or the client is deleted, so that the two cannot be connected again. */
  readonly isFinal?: boolean;
}

const command =
  (line: (held: Holdings) => string) =>
  (held: Holdings): Promise<unknown> =>
    valueFrom(operatorFor(held.on.service), `${line(held)} --yes`);

/** Revokes a token as the client (RFC 7009). */
const revokeBy =
  (pick: (held: Holdings) => readonly [token: string, client: TestClient, hint?: string]) =>
  async (held: Holdings): Promise<void> => {
    const [token, client, token_type_hint] = pick(held);
    const form = { token, token_type_hint };
    const { status, text } = await postForm(held.on.issuer, '/oauth/revoke', form, { client });
    expect({ status, text }).to.deep.equal({ status: 200, text: '{}' });
  };

const revokeAsHolder =
  (pick: (held: Holdings) => string) =>
  async (held: Holdings): Promise<void> => {
    const { status, text } = await revokeCurrent(held.on.issuer, pick(held));
    expect({ status, text }).to.deep.equal({ status: 204, text: '' });
  };

const asOwner = async ({ on }: Holdings) => signedIn(on.service, on.seeded.other);

/** Ways to end access, one after another for the same credentials, because it takes seconds to get them all. */
type Chain = Readonly<Record<string, End>>;

/** An end by each of user, organization, client and operator, a suspension, a deletion and a replay. */
const VARIED: readonly Chain[] = [
  {
    'the holder revokes an access token that is not the latest one': {
      end: revokeAsHolder(({ first }) => first.former),
      ends: ['authorization'],
      isShared: true,
    },
    'the holder revokes the machine token': {
      end: revokeAsHolder(({ machineToken }) => machineToken),
      ends: ['machine token'],
      isShared: true,
    },
    'the person revokes an API key': {
      end: ({ browser, keys: [key] }) => confirmAt(browser, `/profile/api-keys/${key?.id}/revoke`),
      ends: ['API key'],
    },
    'the person signs out': {
      end: ({ browser }) => browser.fillIn('/logout'),
      ends: ['browser'],
    },
    'the organization blocks the client': {
      async end(held) {
        const path = `/profile/organizations/${held.organizationId}/clients/${held.client.id}/end`;
        await confirmAt(await asOwner(held), path);
      },
      empties: CLIENT,
    },
  },
  {
    'the client revokes a refresh token that was replaced (RFC 7009)': {
      end: revokeBy(({ first, client }) => [first.replaced, client]),
      ends: ['authorization'],
      isShared: true,
    },
    'the account is suspended': {
      end: ({ on, person }) => on.service.accounts.suspend(person.accountId),
      undo: ({ on, person }) => on.service.accounts.resume(person.accountId),
      ends: PERSON,
      staysEnded: ['browser', 'second browser'],
    },
    'the client is suspended': {
      end: ({ on, client }) => on.service.clients.suspend(client.id),
      undo: ({ on, client }) => on.service.clients.resume(client.id),
      ends: CLIENT,
    },
    'the machine client is suspended': {
      end: ({ on, machine }) => on.service.clients.suspend(machine.id),
      undo: ({ on, machine }) => on.service.clients.resume(machine.id),
      ends: [...MACHINE, 'machine secret'],
    },
    'an operator revokes everything that the machine client holds': {
      end: command(({ machine }) => `revoke --client ${machine.id}`),
      ends: MACHINE,
      isElsewhere: true,
    },
    'an operator revokes everything that the client holds': {
      end: command(({ client }) => `revoke --client ${client.id}`),
      ends: CLIENT,
      isElsewhere: true,
    },
  },
  {
    'an operator revokes one token': {
      end: command(({ first }) => `revoke --token ${first.refreshToken}`),
      ends: ['authorization'],
      isElsewhere: true,
    },
    'a code is used again': {
      async end({ on, code, client }) {
        expect((await exchangeCode(on.issuer, client, code)).status).to.equal(200);
        expect((await exchangeCode(on.issuer, client, code)).status).to.equal(400);
      },
      ends: ['code'],
      isShared: true,
    },
    'the client is deleted by its owner': {
      async end(held) {
        const path = `/profile/oauth-clients/${held.client.id}/delete`;
        await confirmAt(await asOwner(held), path, { confirm_name: held.client.name });
      },
      ends: CLIENT,
      isFinal: true,
    },
    'the account is deleted': {
      end: command(({ person }) => `accounts delete ${person.email}`),
      ends: PERSON,
      isElsewhere: true,
      isFinal: true,
    },
  },
];

const OTHERS: readonly Chain[] = [
  {
    'the client revokes the access token (RFC 7009)': {
      end: revokeBy(({ first, client }) => [first.accessToken, client, 'refresh_token']),
      ends: ['authorization'],
      isShared: true,
    },
    'the machine client revokes its token (RFC 7009)': {
      end: revokeBy(({ machineToken, machine }) => [machineToken, machine]),
      ends: ['machine token'],
      isShared: true,
    },
    'the client is renewed after a theft': {
      end: command(({ client }) => `clients renew ${client.id}`),
      ends: CLIENT,
      isElsewhere: true,
      isRenewal: true,
    },
    'the machine client is renewed after a theft': {
      end: command(({ machine }) => `clients renew ${machine.id}`),
      ends: [...MACHINE, 'machine secret'],
      isElsewhere: true,
    },
    'the person sets a new password': {
      end: ({ browser, person }) =>
        browser.fillIn('/profile/security', {
          current_password: person.password,
          new_password: 'eight blue pallets, stacked',
        }),
      ends: ['second browser'],
    },
    'the person’s membership is removed': {
      async end(held) {
        const { organizationId, person } = held;
        const path = `/profile/organizations/${organizationId}/people/${person.accountId}/end`;
        await confirmAt(await asOwner(held), path);
      },
      empties: [...CONNECTION, 'authorization of another client', ...KEYS],
    },
  },
  {
    'the client revokes the refresh token (RFC 7009)': {
      end: revokeBy(({ first, client }) => [first.refreshToken, client, 'nonsense']),
      ends: ['authorization'],
      isShared: true,
    },
    'the person signs out everywhere else': {
      end: ({ browser }) => browser.send('/profile/security/sign-out-everywhere'),
      ends: ['second browser'],
    },
    'the machine client’s membership is removed': {
      end: ({ on, machine, organizationId }) => on.service.memberships.remove({ clientId: machine.id }, organizationId),
      empties: MACHINE,
      isElsewhere: true,
    },
    'the person disconnects all clients': {
      end: ({ browser }) => confirmAt(browser, '/profile/connections/disconnect-all'),
      ends: [...CONNECTION, 'authorization of another client'],
    },
  },
  {
    'a refresh token is used again': {
      async end({ on, first, client }) {
        const next = await refresh(on.issuer, client, first.refreshToken);
        expect((await refresh(on.issuer, client, String(next.body.refresh_token))).status).to.equal(200);
        expect((await refresh(on.issuer, client, first.refreshToken)).status).to.equal(400);
      },
      ends: ['authorization'],
      isShared: true,
    },
    'the person disconnects the client': {
      end: ({ browser, client }) => confirmAt(browser, `/profile/connections/${client.id}/disconnect`),
      ends: CONNECTION,
    },
    'the machine client is deleted': {
      end: command(({ machine }) => `clients delete ${machine.id}`),
      ends: [...MACHINE, 'machine secret'],
      isElsewhere: true,
    },
    'an operator revokes everything that acts for the account': {
      end: command(({ person }) => `revoke --account ${person.email}`),
      ends: PERSON,
      isElsewhere: true,
    },
  },
];

const once: Check = (check) => check();
const LATER: Timing = { here: eventually, elsewhere: eventually };

/** What the store of the tokens itself ends, and a renewal, after which the approval stays. */
const REVOCATIONS: readonly Chain[] = OTHERS.map((chain) =>
  Object.fromEntries(Object.entries(chain).filter(([, { isShared, isRenewal }]) => isShared || isRenewal)),
);

const CHAINS = { varied: VARIED, others: OTHERS, revocations: REVOCATIONS };

/**
 * Tests ways to end access, with services that `start` starts.
 *
 * @param which the varied chains, the other ones, or of these only the revocations
 */
export function endOfAccess(start: Start, ...which: (keyof typeof CHAINS)[]): void {
  const many = 100_000;
  const limits = { clientFailures: many, clientFailuresPerAddress: many, clientsPerPerson: many };
  const on = startSeeded({ on: start, clock: true, settings: { limits } });
  let apis: Apis;

  before('start the other node and the APIs', async () => {
    const { clock } = on.clock;
    const isAlone = on.service.database.embedded;
    apis = await openApis(on, isAlone ? on.service : await start({ sharing: on.service, clock }));
  });

  /** Deletes what is not needed any more, after a minute. */
  const clean = (): Promise<void> => {
    on.clock.advance(60);
    return on.service.clean();
  };

  for (const chain of which.flatMap((one) => CHAINS[one])) {
    it(`exactly the affected credentials lose access: ${Object.keys(chain).join('; then ')}`, async () => {
      const held = await hold(apis);
      const gone = new Set<HeldName>();
      const emptied = new Set<HeldName>();
      for (const [title, step] of Object.entries(chain)) {
        await expectEnded(held, step, gone, emptied).catch((error: Error) => {
          error.message = `${title}: ${error.message}`;
          throw error;
        });
      }
      await clean();
      for (const name of gone) await held.credentials[name].expectRefused(LATER);
      for (const name of HELD.filter((one) => !gone.has(one)))
        await held.credentials[name].expectValid(LATER, emptied.has(name));
      if (gone.has('code')) return;
      expect((await exchangeCode(apis.elsewhere.issuer, held.client, held.code)).status).to.equal(200);
    });
  }

  /** Ends what is not among `gone`, to which it adds what stays ended. */
  async function expectEnded(
    held: Holdings,
    { end, ends = [], empties = [], undo, staysEnded = [], ...way }: End,
    gone: Set<HeldName>,
    emptied: Set<HeldName>,
  ): Promise<void> {
    const { credentials } = held;
    const ending = ends.filter((name) => !gone.has(name));
    const emptying = empties.filter((name) => !gone.has(name));
    const rest = HELD.filter((name) => !gone.has(name) && !ends.includes(name));
    const refused = (timing = LATER) => Promise.all(ending.map((name) => credentials[name].expectRefused(timing)));
    const valid = (names: readonly HeldName[]) =>
      Promise.all(names.map((name) => credentials[name].expectValid(LATER, emptied.has(name))));
    for (const name of [...ending, ...emptying]) await credentials[name].cache();

    const answer = await end(held);
    for (const name of emptying) emptied.add(name);
    const here = way.isElsewhere ? eventually : once;
    const elsewhere = way.isShared ? once : eventually;
    await refused({ here, elsewhere });
    await valid(rest);

    if (undo) {
      await clean();
      await refused();
      await undo(held);
      await valid(ending.filter((name) => !staysEnded.includes(name)));
      for (const name of staysEnded) gone.add(name);
      return;
    }
    for (const name of ending) gone.add(name);
    if (!(ending.includes('authorization') || way.isRenewal) || way.isFinal) return;
    const isConnected = way.isRenewal ?? !ends.includes('second authorization');
    expect(await held.isConnected(), 'the consent is stored').to.equal(isConnected);
    const secret = way.isRenewal && (answer as { client_secret: string }).client_secret;
    await (await held.reconnect(secret)).expectValid(LATER, false);
    await refused();
  }

  if (!which.includes('others')) return;
  it('an API whose own client is suspended accepts no caller until the client is resumed', async () => {
    const token = tokensOf(await clientCredentials(on.issuer, on.clients.machine)).accessToken;
    const { id } = on.clients.resourceServer;
    await apis.caching.expectLetIn(token);
    await on.service.clients.suspend(id);
    await eventually(async () => {
      expect((await apis.caching.query(token, '{ caller { subject } }')).status).to.equal(503);
    });
    await on.service.clients.resume(id);
    await eventually(() => apis.caching.expectLetIn(token));
  });
}
