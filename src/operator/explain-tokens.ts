/** What became of a token or a code, as the token store and the memory of revoked grants tell it. */
import { systemClock } from '../clock.ts';
import type { AccessTokenData, GrantData, MachineTokenData } from '../provider/store-adapter.ts';
import { grantIdIn } from '../provider/token-values.ts';
import {
  AUTHORIZE_AGAIN,
  atSeconds,
  explainGrant,
  explainHolders,
  type Facts,
  gone,
} from './explain-grant.ts';
import type { Explanation } from './explanation.ts';
import type { Registries } from './registries.ts';

export async function explainAccessToken(
  registries: Registries,
  value: string,
): Promise<Explanation> {
  const store = await registries.tokenStore();
  const grantId = grantIdIn(value);
  const [record, grant] = await store.readBoth<AccessTokenData, GrantData>(
    { kind: 'access_token', id: value },
    { kind: 'grant', id: grantId },
  );
  const facts: Facts = record
    ? {
        issuedAt: atSeconds(record.expiresAt - record.data),
        expiresAt: atSeconds(record.expiresAt),
      }
    : {};
  return explainGrant(registries, { grantId, grant, facts }, () =>
    record
      ? { state: 'active', why: 'It is good: introspection answers active.' }
      : {
          state: 'expired',
          why: 'Its authorization is good, and nothing of the token itself is kept: it has expired, or a character at its end is wrong.',
          remedy: 'The client gets another one with its refresh token.',
        },
  );
}

export async function explainMachineToken(
  registries: Registries,
  value: string,
): Promise<Explanation> {
  const store = await registries.tokenStore();
  const record = await store.read<MachineTokenData>('machine_token', value);
  if (!record) {
    return gone(
      'A machine access token is forgotten once it has expired or was revoked by itself.',
    );
  }
  const [clientId, lifetime, generation = 0] = record.data;
  const facts: Facts = {
    issuedAt: atSeconds(record.expiresAt - lifetime),
    expiresAt: atSeconds(record.expiresAt),
  };
  return explainHolders(registries, { clientId }, facts, async ({ tokenGeneration }) => {
    if (generation >= tokenGeneration) {
      return { state: 'active', why: 'It is good: introspection answers active.' };
    }
    const [ended] = await registries.audit.find({
      ...{ clientId, action: 'client_tokens_revoked', limit: 1 },
    });
    return {
      state: 'revoked',
      why: 'The operator ended all tokens of the client.',
      remedy: 'The client gets another one with its secret.',
      ...(ended && { revokedAt: ended.at }),
    };
  });
}

export async function explainCode(registries: Registries, value: string): Promise<Explanation> {
  const store = await registries.tokenStore();
  const record = await store.read<CodeData>('code', value);
  if (!record) return gone('A code is forgotten an hour after it has expired.');
  const { grantId, exp, iat } = record.data;
  const facts: Facts = { issuedAt: atSeconds(iat), expiresAt: atSeconds(exp) };
  const grant = await store.read<GrantData>('grant', grantId);
  return explainGrant(registries, { grantId, grant, facts }, () => {
    if (record.isConsumed) {
      return {
        state: 'used',
        why: 'It was exchanged for tokens. Presented again, it ends them.',
        remedy:
          'The client must exchange each code once, and not repeat a request that may have arrived.',
      };
    }
    if (exp * 1000 <= systemClock()) {
      return {
        state: 'expired',
        why: 'The client did not exchange it in time.',
        remedy: AUTHORIZE_AGAIN,
      };
    }
    return { state: 'active', why: 'It was not exchanged yet.' };
  });
}

interface CodeData {
  readonly grantId: string;
  readonly exp: number;
  readonly iat: number;
}
