/** The texts for users whose sign-in with a provider has failed. Only the log says the exact cause. */
import { type Message, message } from '../../base/message.ts';
import { CHOOSE, type Purpose } from '../sign-in/upstream-providers.ts';

export const cancelledNotice = (provider: string, purpose: Purpose): Message =>
  message('upstream.cancelled', { provider, hasApp: String('interaction' in purpose) });

type Failure =
  | (typeof REFUSED)[keyof typeof REFUSED]
  | 'too-many'
  | 'expired'
  | 'away'
  | 'misconfigured'
  | 'invalid'
  | 'unknown';

const textOf = (failure: Failure, provider = '', hasOthers = false) => {
  const values = { provider, hasOthers: String(hasOthers) };
  return {
    heading: message(`upstream.${failure}-heading`, values),
    explanation: message(`upstream.${failure}-explanation`, values),
    advice: message(`upstream.${failure}-advice`, values),
  };
};

const TRY_AGAIN = message('upstream.try-again');
const SIGN_IN = message('sign-in.title');

const tryAgain = (href: string, label = TRY_AGAIN) => ({ links: [{ href, label }] });

export const TOO_MANY = textOf('too-many');

export const flowExpired = (label: string, hasOthers: boolean) => ({
  ...textOf('expired', label),
  ...tryAgain(`/login${hasOthers ? '' : `?${CHOOSE}=yes`}`, SIGN_IN),
});

export const providerUnavailable = (label: string, href: string, hasOthers: boolean) => ({
  ...textOf('away', label, hasOthers),
  ...tryAgain(href, hasOthers ? message('upstream.other-methods') : TRY_AGAIN),
});

export const signInFailed = (why: 'misconfigured' | 'invalid', label: string, href: string) => ({
  ...textOf(why, label),
  ...tryAgain(href),
});

/** Text keys for the reasons of a refused sign-in. All other reasons mean that the user has no account. */
const REFUSED = {
  another: 'another',
  taken: 'taken',
  'taken already': 'linked-already',
  'signed out': 'signed-out',
  unverified: 'unverified',
  suspended: 'suspended',
} as const;

export function signInRefused(reason: string, label: string, href: string) {
  const failure = REFUSED[reason as keyof typeof REFUSED] ?? 'unknown';
  const isLinking = failure === 'another' || failure === 'linked-already';
  const onward = message(isLinking ? 'upstream.go-back' : 'upstream.another-account');
  return {
    ...textOf(failure, label),
    ...tryAgain(href, failure === 'signed-out' ? SIGN_IN : onward),
  };
}
