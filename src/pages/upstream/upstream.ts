/** The providers that people come from, as the settings name them: sign-ins with them, sign-outs there. */
import { type ComeInParts, createComeIn } from '../../accounts/identities/coming-in.ts';
import { createShownOnce } from '../../accounts/shown-once.ts';
import type { CreateAttemptLimit } from '../../base/attempt-limits.ts';
import { createUpstreamProvider, type UpstreamProvider } from '../../upstream/upstream-provider.ts';
import type { VisitorParts } from '../page.ts';
import { createUpstreamFlows, LONGEST_SECONDS } from './flows.ts';
import { upstreamLogouts } from './logout.ts';
import { createNextPerson } from './next-person.ts';
import { createConfirm, createLink } from './own-account.ts';
import { createUpstreamSignIns } from './sign-in.ts';

type SignInParts = Omit<
  Parameters<typeof createUpstreamSignIns>[0],
  'providers' | 'passwords' | 'flows' | 'nextPerson' | 'comeIn' | 'link' | 'confirm'
>;

type LogoutParts = Omit<
  Parameters<typeof upstreamLogouts>[0],
  'providers' | 'endSession' | 'failures'
>;

interface UpstreamSettings {
  readonly issuer: string;
  readonly signIn: {
    readonly passwords: boolean;
    readonly providers: readonly UpstreamProvider['settings'][];
  };
  readonly limits: {
    readonly waitingSignInsPerAddress: number;
    readonly clientFailuresPerAddress: number;
    readonly clientFailureWindowSeconds: number;
  };
}

/** Asks no provider yet. */
export function createUpstream(
  parts: SignInParts &
    LogoutParts &
    ComeInParts &
    VisitorParts &
    Omit<Parameters<typeof createLink>[0], 'linkTo'> &
    Parameters<typeof createConfirm>[0] & {
      readonly settings: UpstreamSettings;
      readonly store: Parameters<typeof createShownOnce>[0]['store'] & {
        removeSessionByUid(uid: string): Promise<void>;
      };
      readonly createAttemptLimit: CreateAttemptLimit;
    },
) {
  const { settings, clock, log, store, createAttemptLimit } = parts;
  const { issuer, limits, signIn } = settings;
  const providers = signIn.providers.map((provider) =>
    createUpstreamProvider({ issuer, settings: provider, clock }),
  );
  const { comeIn, linkTo } = createComeIn(parts);
  return {
    signIns: createUpstreamSignIns({
      ...parts,
      providers,
      passwords: signIn.passwords,
      flows: createUpstreamFlows({
        issuer,
        kept: createShownOnce({ store, clock, seconds: LONGEST_SECONDS }),
        waiting: createAttemptLimit({
          name: 'upstream_sign_ins',
          attempts: limits.waitingSignInsPerAddress,
          windowSeconds: LONGEST_SECONDS,
          whenAway: 'count here',
          log,
        }),
      }),
      nextPerson: createNextPerson(
        issuer,
        signIn.providers.map(({ id }) => id),
      ),
      comeIn,
      link: createLink({ ...parts, linkTo }),
      confirm: createConfirm(parts),
    }),
    logouts: upstreamLogouts({
      ...parts,
      providers,
      endSession: store.removeSessionByUid,
      failures: createAttemptLimit({
        name: 'upstream_logouts',
        attempts: limits.clientFailuresPerAddress,
        windowSeconds: limits.clientFailureWindowSeconds,
        whenAway: 'count here',
        log,
      }),
    }),
  };
}
