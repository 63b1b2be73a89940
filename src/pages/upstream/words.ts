/** The texts for users whose sign-in with a provider failed. The log contains the cause. */
import { CHOOSE } from '../sign-in/upstream-ways.ts';

export const NOT_ENOUGH =
  'This sign-in did not prove enough to choose another password. Confirm with a second step there, or ask your administrator for a link.';
export const CONFIRMED = 'You have confirmed that it is you. Nothing is done yet: do it now.';

export const linkedNotice = (label: string): string => `You can sign in with ${label} from now on.`;

export const TOO_MANY = {
  heading: 'Too many sign-ins were begun',
  explanation: 'From your network address more were begun than are kept open at once.',
  advice: 'Wait a few minutes and try again.',
};

const tryAgain = (href: string, label = 'Try again') => ({ links: [{ href, label }] });

export const flowExpired = (label: string, hasOthers: boolean) => ({
  heading: 'This sign-in is over',
  explanation: `What ${label} sent you back with was used already, took longer than ten minutes, or was begun in another browser.`,
  advice: 'Sign in again. If it happens again, allow cookies for this site.',
  ...tryAgain(`/login${hasOthers ? '' : `?${CHOOSE}=yes`}`, 'Sign in'),
});

export const providerUnavailable = (label: string, href: string, hasOthers: boolean) => ({
  heading: `${label} does not answer`,
  explanation: 'You cannot sign in with it at this moment. Nothing is wrong with your account.',
  advice: hasOthers ? 'Sign in another way, or try again later.' : 'Try again in a minute.',
  ...tryAgain(href, hasOthers ? 'Other ways to sign in' : 'Try again'),
});

export const signInCancelled = (label: string, href: string) => ({
  heading: 'You are not signed in',
  explanation: `You came back from ${label} without signing in there.`,
  advice: 'Try again, or close this page.',
  ...tryAgain(href),
});

export const providerMisconfigured = (label: string, href: string) => ({
  heading: `Signing in with ${label} does not work`,
  explanation: 'This service is not set up correctly for it. Nothing is wrong with your account.',
  advice: 'Sign in another way, or tell the operator of this service, with the reference below.',
  ...tryAgain(href),
});

export const answerInvalid = (label: string, href: string) => ({
  heading: 'You could not be signed in',
  explanation: `${label} sent you back with an answer that does not prove who you are.`,
  advice:
    'Try again. If it happens again, tell whoever runs this service, with the reference below.',
  ...tryAgain(href),
});

export function signInRefused(reason: string, label: string, href: string) {
  const tell = 'Tell whoever runs this service, with the reference below.';
  const again = tryAgain(href, 'Sign in with another account');
  if (reason === 'another') {
    return {
      heading: 'That was somebody else',
      explanation: `You signed in at ${label} with another account than the one you use here. Nothing was done.`,
      advice: 'Sign in there as yourself, and try again.',
      ...tryAgain(href, 'Go back'),
    };
  }
  if (reason === 'taken') {
    return {
      heading: 'You could not be signed in',
      explanation: `The account that seems to be yours is linked with another account at ${label}.`,
      advice: tell,
      ...again,
    };
  }
  if (reason === 'taken already') {
    return {
      heading: 'It was not linked',
      explanation: `That account at ${label} is linked with another account here, or yours is linked with another one there.`,
      advice: 'Sign in there as somebody else, or remove the link that you have.',
      ...tryAgain(href, 'Go back'),
    };
  }
  if (reason === 'signed out') {
    return {
      heading: 'You are signed out here',
      explanation: `Nothing was linked: while you were at ${label}, your session here ended.`,
      advice: 'Sign in, and try again.',
      ...tryAgain(href, 'Sign in'),
    };
  }
  if (reason === 'unverified') {
    return {
      heading: 'Your email address is not verified',
      explanation: `${label} has not verified the email address of your account there, so it cannot be used to sign you in here.`,
      advice: `Verify it at ${label}, and sign in again.`,
      ...again,
    };
  }
  if (reason === 'suspended') {
    return {
      heading: 'Your account is suspended',
      explanation: 'You cannot sign in here with it.',
      advice: tell,
      ...again,
    };
  }
  return {
    heading: 'There is no account for you here',
    explanation: `${label} let you in, and this service knows nobody who belongs to that account.`,
    advice: tell,
    ...again,
  };
}
