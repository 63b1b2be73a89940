/** What else opens an account or acts for its user: a user who recovers it may end them. */
import type { Context } from 'koa';
import type { Account } from '../../accounts/account.ts';
import type { ApiKeys } from '../../accounts/api-keys/api-keys.ts';
import type { PasswordChanges } from '../../accounts/passwords/changes.ts';
import type { WayHeld, WaysIn } from '../../accounts/ways-in.ts';
import type { Connections } from '../../authorizations/connections.ts';
import type { Disconnect } from '../../authorizations/endings.ts';
import { formOf } from '../../provider/form.ts';
import { originOf } from '../page.ts';
import { type Moment, momentOf } from '../words/moment.ts';
import { connectionsInWords } from '../words/reached.ts';

/** A checkbox. */
export interface EndingChoice {
  readonly name: string;
  readonly value: string;
  /** `disconnect` */
  readonly verb: string;
  /** `the client that acts for you` */
  readonly what: string;
  /** For a sign-in method: since when it exists. */
  readonly since: Moment | undefined;
  readonly isChosen: boolean;
}

export interface EndingChoices {
  /** Lists what exists now; `isChosen` is true for what the form has ticked. */
  of(ctx: Context, account: Account): Promise<readonly EndingChoice[]>;
  /**
   * Ends what the form has ticked, in the transaction that lets the user in again.
   *
   * @param removed receives the removed sign-in methods.
   */
  ending(
    ctx: Context,
    removed?: (ways: readonly WayHeld[]) => void,
  ): NonNullable<Parameters<PasswordChanges['useLink']>[2]>;
}

const FIELD = { connections: 'end_connections', apiKeys: 'revoke_api_keys', way: 'remove_way' };

export function createEndingChoices({
  connections,
  disconnect,
  apiKeys,
  waysIn,
}: {
  readonly connections: Pick<Connections, 'listOf'>;
  readonly disconnect: Disconnect;
  readonly apiKeys: Pick<ApiKeys, 'listOf' | 'revokeAll'>;
  readonly waysIn: Pick<WaysIn, 'of' | 'removeWith'>;
}): EndingChoices {
  return {
    async of(ctx, { id }) {
      const [connected, keys, ways] = await Promise.all([
        connections.listOf(id),
        apiKeys.listOf(id),
        waysIn.of(id),
      ]);
      const form = ctx.method === 'POST' ? formOf(ctx) : new URLSearchParams();
      const acting = connectionsInWords(connected.length);
      const choices = [
        ...(acting ? [{ name: FIELD.connections, verb: 'disconnect', what: acting }] : []),
        ...(keys.length > 0
          ? [{ name: FIELD.apiKeys, verb: 'revoke', what: keysInWords(keys.length) }]
          : []),
        ...ways.map(wayChoice),
      ];
      return choices.map(({ value = 'yes', since, ...choice }: Choice) => ({
        ...choice,
        value,
        since: since && momentOf(since),
        isChosen: form.getAll(choice.name).includes(value),
      }));
    },

    ending(ctx, removed = () => {}) {
      const form = formOf(ctx);
      const origin = originOf(ctx);
      const isChosen = (name: string): boolean => form.get(name) === 'yes';
      return async (tx, { id: accountId }) => {
        if (isChosen(FIELD.connections)) await disconnect({ accountId }, origin, undefined, tx);
        if (isChosen(FIELD.apiKeys)) await apiKeys.revokeAll(accountId, { origin, tx });
        removed(await waysIn.removeWith(accountId, form.getAll(FIELD.way), { origin, tx }));
      };
    },
  };
}

const keysInWords = (keys: number): string =>
  keys === 1 ? 'your API key' : `all ${keys} API keys`;

interface Choice {
  readonly name: string;
  readonly verb: string;
  readonly what: string;
  readonly value?: string;
  readonly since?: Date;
}

const wayChoice = ({ id, kind, label, addedAt }: WayHeld): Choice => ({
  name: FIELD.way,
  value: id,
  since: addedAt,
  verb: 'remove',
  what: kind === 'passkey' ? `the passkey ${label}` : `the sign-in with ${label}`,
});
