/** Every way in which access ends: what it ends at each door, what goes on, and what comes back. */
import { expect } from 'chai';
import { operatorBeside, valueFrom } from '../operator/run-operator.ts';
import { signedIn } from '../pages/signed-in-person.ts';
import { confirmAt } from '../sandbox/called-api.ts';
import { eventually } from '../support/eventually.ts';
import {
  exchangeCode,
  introspect,
  postForm,
  refresh,
  revokeCurrent,
  type TestClient,
} from '../support/oauth.ts';
import { startSeeded } from '../support/seeded.ts';
import { forEachDeployment } from '../support/service.ts';
import {
  type Doors,
  HELD,
  type Hearing,
  type Hears,
  type HeldName,
  type Holdings,
  hold,
  openDoors,
} from './holdings.ts';

const CONNECTION = ['authorization', 'second authorization', 'code'] as const;
const KEYS = ['API key', 'second API key'] as const;
const MACHINE = ['machine token', 'second machine token'] as const;
const BROWSERS = ['browser', 'second browser'] as const;
const PERSON = [...CONNECTION, 'authorization of another client', ...KEYS, ...BROWSERS] as const;
const CLIENT = [...CONNECTION, 'authorization of another person'] as const;

interface Way {
  readonly end: (held: Holdings) => Promise<unknown>;
  /** All else goes on. */
  readonly ends?: readonly HeldName[];
  /** What stays good and reaches no organization any more. */
  readonly empties?: readonly HeldName[];
  /** Takes the end back: then what has ended is good again, browser sessions too. */
  readonly undo?: (held: Holdings) => Promise<unknown>;
  /** It is done at every node when it is answered; else the others hear of it a moment later. */
  readonly isShared?: boolean;
  /** It is done by another process, of which every node hears a moment later. */
  readonly isElsewhere?: boolean;
  /** The user or the client is deleted, so the two cannot be connected again. */
  readonly isFinal?: boolean;
}

const command =
  (line: (held: Holdings) => string) =>
  (held: Holdings): Promise<unknown> =>
    valueFrom(operatorBeside(held.on.service), `${line(held)} --yes`);

/** RFC 7009. */
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

const WAYS: Readonly<Record<string, Way>> = {
  'the account is suspended': {
    end: ({ on, person }) => on.service.accounts.suspend(person.accountId),
    undo: ({ on, person }) => on.service.accounts.resume(person.accountId),
    ends: PERSON,
  },
  'the account is deleted': {
    end: command(({ person }) => `accounts delete ${person.email}`),
    ends: PERSON,
    isElsewhere: true,
    isFinal: true,
  },
  'the client is suspended': {
    end: ({ on, client }) => on.service.clients.suspend(client.id),
    undo: ({ on, client }) => on.service.clients.resume(client.id),
    ends: CLIENT,
  },
  'the client is deleted by its owner': {
    async end(held) {
      const path = `/profile/oauth-clients/${held.client.id}/delete`;
      await confirmAt(await asOwner(held), path, { confirm_name: held.client.name });
    },
    ends: CLIENT,
    isFinal: true,
  },
  'the machine client is suspended': {
    end: ({ on, machine }) => on.service.clients.suspend(machine.id),
    undo: ({ on, machine }) => on.service.clients.resume(machine.id),
    ends: [...MACHINE, 'machine secret'],
  },
  'the machine client is deleted': {
    end: command(({ machine }) => `clients delete ${machine.id}`),
    ends: [...MACHINE, 'machine secret'],
    isElsewhere: true,
  },
  'the person disconnects the client': {
    end: ({ browser, client }) =>
      confirmAt(browser, `/profile/connections/${client.id}/disconnect`),
    ends: CONNECTION,
  },
  'the person disconnects all clients': {
    end: ({ browser }) => confirmAt(browser, '/profile/connections/disconnect-all'),
    ends: [...CONNECTION, 'authorization of another client'],
  },
  'the person revokes an API key': {
    end: ({ browser, keys: [key] }) => confirmAt(browser, `/profile/api-keys/${key?.id}/revoke`),
    ends: ['API key'],
  },
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
  'the client revokes the access token (RFC 7009)': {
    end: revokeBy(({ first, client }) => [first.accessToken, client, 'refresh_token']),
    ends: ['authorization'],
    isShared: true,
  },
  'the client revokes the refresh token (RFC 7009)': {
    end: revokeBy(({ first, client }) => [first.refreshToken, client, 'nonsense']),
    ends: ['authorization'],
    isShared: true,
  },
  'the client revokes a refresh token that was replaced (RFC 7009)': {
    end: revokeBy(({ first, client }) => [first.replaced, client]),
    ends: ['authorization'],
    isShared: true,
  },
  'the machine client revokes its token (RFC 7009)': {
    end: revokeBy(({ machineToken, machine }) => [machineToken, machine]),
    ends: ['machine token'],
    isShared: true,
  },
  'a refresh token is used again': {
    async end({ on, first, client }) {
      const next = await refresh(on.issuer, client, first.refreshToken);
      expect((await refresh(on.issuer, client, String(next.body.refresh_token))).status).to.equal(
        200,
      );
      expect((await refresh(on.issuer, client, first.refreshToken)).status).to.equal(400);
    },
    ends: ['authorization'],
    isShared: true,
  },
  'a code is used again': {
    async end({ on, code, client }) {
      expect((await exchangeCode(on.issuer, client, code)).status).to.equal(200);
      expect((await exchangeCode(on.issuer, client, code)).status).to.equal(400);
    },
    ends: ['code'],
    isShared: true,
  },
  'an operator revokes what acts for the account': {
    end: command(({ person }) => `revoke --account ${person.email}`),
    ends: PERSON,
    isElsewhere: true,
  },
  'an operator revokes what the client holds': {
    end: command(({ client }) => `revoke --client ${client.id}`),
    ends: CLIENT,
    isElsewhere: true,
  },
  'an operator revokes what the machine client holds': {
    end: command(({ machine }) => `revoke --client ${machine.id}`),
    ends: MACHINE,
    isElsewhere: true,
  },
  'an operator revokes one token': {
    end: command(({ first }) => `revoke --token ${first.refreshToken}`),
    ends: ['authorization'],
    isElsewhere: true,
  },
  'an operator repeats an end that a restored token store has undone': {
    async end(held) {
      const { on, person, client, first } = held;
      const { body } = await introspect(on.issuer, on.clients.resourceServer, first.accessToken);
      // As after such a restore: recorded as ended, and active in the token store.
      await on.service.database.query(
        `INSERT INTO ended_authorizations (id, at, cause, account_id, client_id)
          VALUES ($1, now(), 'client_revoked', $2, $3)`,
        [body.authorization, person.accountId, client.id],
      );
      await command(() => 'revoke --recorded')(held);
    },
    ends: ['authorization'],
    isElsewhere: true,
  },
  'the organization blocks the client': {
    async end(held) {
      const path = `/profile/organizations/${held.organizationId}/clients/${held.client.id}/end`;
      await confirmAt(await asOwner(held), path);
    },
    empties: CLIENT,
  },
  'the person’s membership is removed': {
    async end(held) {
      const { organizationId, person } = held;
      const path = `/profile/organizations/${organizationId}/people/${person.accountId}/end`;
      await confirmAt(await asOwner(held), path);
    },
    empties: [...CONNECTION, 'authorization of another client', ...KEYS],
  },
  'the machine client’s membership is removed': {
    end: ({ on, machine, organizationId }) =>
      on.service.memberships.remove({ clientId: machine.id }, organizationId),
    empties: MACHINE,
    isElsewhere: true,
  },
  'the person signs out': {
    end: ({ browser }) => browser.fillIn('/logout'),
    ends: ['browser'],
  },
  'the person signs out everywhere else': {
    end: ({ browser }) => browser.send('/profile/security/sign-out-everywhere'),
    ends: ['second browser'],
  },
  'the person sets a new password': {
    end: ({ browser, person }) =>
      browser.fillIn('/profile/security', {
        current_password: person.password,
        new_password: 'eight blue pallets, stacked',
      }),
    ends: ['second browser'],
  },
};

const once: Hears = (check) => check();
const LATER: Hearing = { here: eventually, elsewhere: eventually, remembering: eventually };

forEachDeployment('what an end ends', (start) => {
  const many = 100_000;
  const limits = { clientFailures: many, clientFailuresPerAddress: many, clientsPerPerson: many };
  const on = startSeeded({ on: start, clock: true, settings: { limits } });
  let doors: Doors;

  before('open the doors', async () => {
    const { clock } = on.clock;
    const isAlone = on.service.database.embedded;
    doors = await openDoors(on, isAlone ? on.service : await start({ beside: on.service, clock }));
  });

  for (const [title, { end, ends = [], empties = [], undo, ...way }] of Object.entries(WAYS)) {
    const rest = HELD.filter((name) => !ends.includes(name));
    const isAsked = ends.includes('second authorization');

    it(title, async () => {
      const held = await hold(doors);
      const { credentials } = held;
      const refused = (hearing = LATER) =>
        Promise.all(ends.map((name) => credentials[name].expectRefused(hearing)));
      for (const name of [...ends, ...empties]) await credentials[name].remember();

      await end(held);
      const here = way.isElsewhere ? eventually : once;
      const elsewhere = way.isShared ? once : eventually;
      await refused({ here, elsewhere, remembering: eventually });
      on.clock.advance(60);
      await on.service.clean();
      await refused();
      await Promise.all(
        rest.map((name) => credentials[name].expectTaken(LATER, empties.includes(name))),
      );

      if (undo) {
        await undo(held);
        for (const name of ends) await credentials[name].expectTaken(LATER, false);
      } else if (ends.includes('authorization') && !way.isFinal) {
        expect(await held.isConnected(), 'the consent is remembered').to.equal(!isAsked);
        await (await held.reconnect()).expectTaken(LATER, false);
        await refused();
      }
    });
  }

  it('an API whose own client is suspended accepts no caller until it is resumed', async () => {
    const { credentials, machineToken } = await hold(doors);
    const { id } = on.clients.resourceServer;
    const bearer = credentials['machine token'];
    await bearer.remember();
    await on.service.clients.suspend(id);
    for (const api of [doors.asking, doors.remembering]) {
      await eventually(async () => {
        expect((await api.query(machineToken, '{ caller { subject } }')).status).to.equal(503);
      });
    }
    await on.service.clients.resume(id);
    await bearer.expectTaken(LATER, false);
  });
});
