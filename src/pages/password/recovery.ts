/** Lists what else gives access to an account, and what of it the page of a one-time link can end. */
import type { Context } from 'koa';
import type { Account } from '../../accounts/account.ts';
import type { ApiKeys } from '../../accounts/api-keys/api-keys.ts';
import type { RecoveryStep } from '../../accounts/password-links/password-changes.ts';
import type { LinkPurpose } from '../../accounts/password-links/password-links.ts';
import type { LinkedMethod, SignInMethods } from '../../accounts/sign-in-methods.ts';
import type { StrongSignIns } from '../../accounts/strong-sign-ins.ts';
import type { Connections } from '../../authorizations/connections.ts';
import type { Disconnect } from '../../authorizations/endings.ts';
import { type Message, message } from '../../base/message.ts';
import { formOf } from '../../provider/form.ts';
import { byPassword, type Standing, type Standings } from '../../provider/standings.ts';
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
  /** True if this link may not end it: then it has no checkbox. */
  readonly isKept: boolean;
}

export type EndingChoices = ReturnType<typeof createEndingChoices>;

const FIELD = { connections: 'end_connections', apiKeys: 'revoke_api_keys', way: 'remove_way' };

export function createEndingChoices({
  connections,
  disconnect,
  apiKeys,
  signInMethods,
  standings,
  endGrace,
}: {
  readonly connections: Pick<Connections, 'listOf'>;
  readonly disconnect: Disconnect;
  readonly apiKeys: Pick<ApiKeys, 'listOf' | 'revokeAll'>;
  readonly signInMethods: Pick<SignInMethods, 'of' | 'removeWith'>;
  readonly standings: Pick<Standings, 'wouldBe'>;
} & Pick<StrongSignIns, 'endGrace'>) {
  /**
   * A mailed link proves access to the mailbox only. It therefore removes no passkey, and no method at all
   * of a user who needs more than a password (OWASP ASVS 5.0, 6.4.3 and 6.4.4).
   */
  const keptBy =
    (purpose: LinkPurpose | undefined, withPassword: Standing) =>
    ({ kind }: LinkedMethod): boolean =>
      purpose === 'forgotten' && (kind === 'passkey' || withPassword.is !== 'free');

  return {
    /**
     * Lists what gives access now; `isChosen` is true for a ticked checkbox.
     *
     * @param purpose of the link that authenticates the user; absent for a signed-in user.
     */
    async of(ctx: Context, { id }: Account, purpose?: LinkPurpose): Promise<readonly EndingChoice[]> {
      const [connected, keys, ways, withPassword] = await Promise.all([
        connections.listOf(id),
        apiKeys.listOf(id),
        signInMethods.of(id),
        standings.wouldBe(byPassword(id)),
      ]);
      const isKept = keptBy(purpose, withPassword);
      const form = ctx.method === 'POST' ? formOf(ctx) : new URLSearchParams();
      const [apps, own] = [{ count: connected.length }, { count: keys.length }];
      const choices = [
        ...(apps.count > 0 ? [{ name: FIELD.connections, what: message('ending.apps', apps) }] : []),
        ...(own.count > 0 ? [{ name: FIELD.apiKeys, what: message('ending.api-keys', own) }] : []),
        ...ways.map((way) => ({ ...methodChoice(way), isKept: isKept(way) })),
      ];
      return choices.map(({ value = 'yes', since, isKept = false, ...choice }: Choice) => ({
        ...choice,
        value,
        since: since && toMoment(since),
        isChosen: form.getAll(choice.name).includes(value),
        isKept,
      }));
    },

    /**
     * Ends what the form has ticked, in the transaction that restores the user's access.
     *
     * @param removed receives the removed sign-in methods.
     */
    ending(ctx: Context, removed: (ways: readonly LinkedMethod[]) => void = () => {}): RecoveryStep {
      const form = formOf(ctx);
      const origin = requestOrigin(ctx);
      const isChosen = (name: string): boolean => form.get(name) === 'yes';
      const ways = form.getAll(FIELD.way);
      const run: RecoveryStep['run'] = async (tx, { account: { id: accountId }, purpose }) => {
        if (isChosen(FIELD.connections)) await disconnect({ accountId }, origin, undefined, tx);
        if (isChosen(FIELD.apiKeys)) await apiKeys.revokeAll(accountId, { origin, tx });
        const withPassword = await standings.wouldBe(byPassword(accountId), tx);
        const hasStrongMethod = withPassword.is !== 'free' && withPassword.hasStrongMethod;
        // The password of a mailed link must not open what a strong method protects, not even for some days.
        if (purpose === 'forgotten' && hasStrongMethod) await endGrace(accountId, tx);
        const isKept = keptBy(purpose, withPassword);
        removed(await signInMethods.removeWith(accountId, ways, { origin, tx, isKept }));
      };
      return { ways, run };
    },
  };
}

interface Choice {
  readonly name: string;
  readonly what: Message;
  readonly value?: string;
  readonly since?: Date;
  readonly isKept?: boolean;
}

const methodChoice = ({ id, kind, label, addedAt }: LinkedMethod): Choice => ({
  name: FIELD.way,
  value: id,
  since: addedAt,
  what: message(kind === 'passkey' ? 'ending.passkey' : 'ending.provider', { label }),
});
