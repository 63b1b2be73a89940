/** Lists what else gives access to an account, so that the user can end it at a recovery. */
import type { Context } from 'koa';
import type { Account } from '../../accounts/account.ts';
import type { ApiKeys } from '../../accounts/api-keys/api-keys.ts';
import type { PasswordChanges } from '../../accounts/password-links/password-changes.ts';
import type { LinkedMethod, SignInMethods } from '../../accounts/sign-in-methods.ts';
import type { Connections } from '../../authorizations/connections.ts';
import type { Disconnect } from '../../authorizations/endings.ts';
import { type Message, message } from '../../base/message.ts';
import { formOf } from '../../provider/form.ts';
import { requestOrigin } from '../page.ts';
import { type Moment, toMoment } from '../words/moment.ts';

/** A checkbox to end something that gives access to the account, such as a passkey or a client. */
export interface EndingChoice {
  readonly name: string;
  readonly value: string;
  /** What ends, such as `Your connected app`. */
  readonly what: Message;
  /** For a sign-in method: the time when it was added. */
  readonly since: Moment | undefined;
  readonly isChosen: boolean;
}

export interface EndingChoices {
  /** Lists what gives access now; `isChosen` is true for a ticked checkbox. */
  of(ctx: Context, account: Account): Promise<readonly EndingChoice[]>;
  /**
   * Ends what the form has ticked, in the transaction that restores the user's access.
   *
   * @param removed receives the removed sign-in methods.
   */
  ending(
    ctx: Context,
    removed?: (ways: readonly LinkedMethod[]) => void,
  ): NonNullable<Parameters<PasswordChanges['useLink']>[2]>;
}

const FIELD = { connections: 'end_connections', apiKeys: 'revoke_api_keys', way: 'remove_way' };

export function createEndingChoices({
  connections,
  disconnect,
  apiKeys,
  signInMethods,
}: {
  readonly connections: Pick<Connections, 'listOf'>;
  readonly disconnect: Disconnect;
  readonly apiKeys: Pick<ApiKeys, 'listOf' | 'revokeAll'>;
  readonly signInMethods: Pick<SignInMethods, 'of' | 'removeWith'>;
}): EndingChoices {
  return {
    async of(ctx, { id }) {
      const [connected, keys, ways] = await Promise.all([
        connections.listOf(id),
        apiKeys.listOf(id),
        signInMethods.of(id),
      ]);
      const form = ctx.method === 'POST' ? formOf(ctx) : new URLSearchParams();
      const [apps, own] = [{ count: connected.length }, { count: keys.length }];
      const choices = [
        ...(apps.count > 0 ? [{ name: FIELD.connections, what: message('ending.apps', apps) }] : []),
        ...(own.count > 0 ? [{ name: FIELD.apiKeys, what: message('ending.api-keys', own) }] : []),
        ...ways.map(methodChoice),
      ];
      return choices.map(({ value = 'yes', since, ...choice }: Choice) => ({
        ...choice,
        value,
        since: since && toMoment(since),
        isChosen: form.getAll(choice.name).includes(value),
      }));
    },

    ending(ctx, removed = () => {}) {
      const form = formOf(ctx);
      const origin = requestOrigin(ctx);
      const isChosen = (name: string): boolean => form.get(name) === 'yes';
      return async (tx, { id: accountId }) => {
        if (isChosen(FIELD.connections)) await disconnect({ accountId }, origin, undefined, tx);
        if (isChosen(FIELD.apiKeys)) await apiKeys.revokeAll(accountId, { origin, tx });
        removed(await signInMethods.removeWith(accountId, form.getAll(FIELD.way), { origin, tx }));
      };
    },
  };
}

interface Choice {
  readonly name: string;
  readonly what: Message;
  readonly value?: string;
  readonly since?: Date;
}

const methodChoice = ({ id, kind, label, addedAt }: LinkedMethod): Choice => ({
  name: FIELD.way,
  value: id,
  since: addedAt,
  what: message(kind === 'passkey' ? 'ending.passkey' : 'ending.provider', { label }),
});
