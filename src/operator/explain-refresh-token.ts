/** What became of a refresh token: where it stands in its family, and whether the family is alive. */
import { systemClock } from '../clock.ts';
import type { Settings } from '../config/settings.ts';
import {
  claimedNameOf,
  createRefreshTokenValues,
  isUsable,
} from '../provider/refresh-token-values.ts';
import type { RefreshTokenData } from '../provider/refresh-tokens.ts';
import type { GrantData } from '../provider/store-adapter.ts';
import type { RefreshFamily } from '../storage/token-store.ts';
import { AUTHORIZE_AGAIN, atSeconds, explainGrant, type Facts } from './explain-grant.ts';
import type { Explanation } from './explanation.ts';
import type { Registries } from './registries.ts';

export async function explainRefreshToken(
  registries: Registries,
  value: string,
): Promise<Explanation> {
  const name = claimedNameOf(value);
  if (!name)
    return { state: 'malformed', why: 'Its end, which counts the refreshes, is not right.' };
  const keys = registries.keys()?.tokenKeys;
  if (keys && !createRefreshTokenValues(keys).nameOf(value)) {
    return {
      state: 'unknown',
      why: 'No token key of this configuration made it: a character is wrong, it is of another deployment, or its key was taken out.',
      remedy: 'Compare it with what the client keeps; `keys` lists the keys by fingerprint.',
    };
  }
  const store = await registries.tokenStore();
  const { grantId, rotation } = name;
  const grant = await store.read<GrantData>('grant', grantId);
  const family = await store.readFamily<RefreshTokenData>(grantId);
  const facts: Facts = {
    ...(family && family.rotation > 0 && { rotatedAt: new Date(family.rotatedAt) }),
    ...(family?.rotation === rotation && {
      issuedAt: atSeconds(family.data.iat),
      expiresAt: atSeconds(family.data.exp),
    }),
  };
  const explained = await explainGrant(registries, { grantId, grant, facts }, () =>
    family
      ? standingOf(rotation, family, registries.settings.tokens)
      : {
          state: 'expired',
          why: 'Its authorization was not refreshed until the last refresh token had expired.',
          remedy: AUTHORIZE_AGAIN,
        },
  );
  if (keys) return explained;
  const unchecked =
    'Whether the value is genuine was not checked: this environment has no token keys.';
  return { ...explained, why: `${explained.why} ${unchecked}` };
}

/** How a token stands to the record of its family, whose grant is good. */
function standingOf(
  rotation: number,
  family: RefreshFamily<RefreshTokenData>,
  { retryWindowSeconds }: Settings['tokens'],
): Explanation {
  const now = systemClock();
  const rotatedAt = new Date(family.rotatedAt);
  if (rotation < family.rotation && !isUsable(rotation, family, { now, retryWindowSeconds })) {
    const when =
      rotation === family.rotation - 1
        ? `It was replaced at ${rotatedAt.toISOString()}, and the ${retryWindowSeconds} s for a retry are over.`
        : `${family.rotation - rotation} newer ones were issued after it, the last at ${rotatedAt.toISOString()}.`;
    return {
      state: 'reused',
      why: `${when} Presented, it ends the authorization.`,
      remedy: 'The client must keep the refresh token of each answer, and use the newest one only.',
    };
  }
  if (family.data.exp * 1000 <= now) {
    return {
      state: 'expired',
      why: 'It was not used in time.',
      remedy: AUTHORIZE_AGAIN,
    };
  }
  if (rotation >= family.rotation) return { state: 'active', why: 'It is the current one.' };
  return {
    state: 'replaced',
    why: 'It was refreshed. For a retry it still answers with the same successor.',
    retryUntil: new Date(family.rotatedAt + retryWindowSeconds * 1000),
  };
}
