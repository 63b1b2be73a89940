/** The doctor's look at the providers that people sign in with: does each answer, and know us? */
import type { findProviders } from '../config/load.ts';
import type { SignInProvider } from '../config/sign-in-providers.ts';
import type { Findings } from './findings.ts';

const CHECK = 'sign_in_providers';

/** All at once: none has to wait for another that does not answer. */
export async function checkProviders(
  findings: Findings,
  issuer: string,
  { providers, problems }: ReturnType<typeof findProviders>,
): Promise<void> {
  if (providers.length === 0) return;
  // Here, for most deployments have none.
  const { UpstreamRefusal } = await import('../upstream/failures.ts');
  const { callbackUrl, createUpstreamProvider } = await import('../upstream/upstream-provider.ts');
  const outcomes = await Promise.all(
    providers.map(async (settings) => {
      const start = performance.now();
      const provider = createUpstreamProvider({ issuer, settings, clock: Date.now });
      const error = await provider.checkClient().then(
        () => undefined,
        (reason: Error) => reason,
      );
      const ms = performance.now() - start;
      const asked = error ? undefined : await provider.checkRedirectUri().catch(() => undefined);
      return { error, ms, redirect: asked };
    }),
  );
  for (const [index, { error, ms, redirect }] of outcomes.entries()) {
    const settings = providers[index] as SignInProvider;
    const { id } = settings;
    const secret = `sign_in.providers.${index}.client_secret_file`;
    const unread = problems.find(({ path }) => path === secret);
    const redirectUri = callbackUrl(issuer, settings);
    if (error === undefined && redirect === 'refused') {
      findings.problem({
        check: CHECK,
        where: `sign_in.providers.${index}`,
        message: `${id} accepts our client, and answers 400 to a sign-in that is to come back to ${redirectUri}`,
        remedy: `register ${redirectUri} as a redirect URI of client ${settings.clientId} there, character by character`,
      });
    } else if (error === undefined) {
      const isRegistered = redirect === 'registered';
      const words = isRegistered
        ? `and sends people back to ${redirectUri}`
        : `but does not say without a person whether ${redirectUri} is registered as a redirect URI: compare it there, or sign in once`;
      findings.ok(CHECK, `${id} accepts our client, ${words}`, ms);
    } else if (!(error instanceof UpstreamRefusal)) {
      findings.problem({
        check: CHECK,
        where: `sign_in.providers, ${settings.issuer}`,
        message: `nobody can sign in with ${id} from this machine: ${error.message}`,
        remedy:
          'let this machine connect to it and trust its certificate (NODE_EXTRA_CA_CERTS for an authority of ' +
          'your own); or open {issuer}/.well-known/openid-configuration, and write its `issuer` into the ' +
          'settings character by character',
      });
    } else if (unread) {
      findings.warning({
        check: CHECK,
        where: secret,
        message: `${id} answers; our secret was not tried, for ${secret} ${unread.message}`,
        remedy: 'run the doctor as the user of the service, or let this one read the file',
      });
    } else {
      findings.problem({
        check: CHECK,
        where: `sign_in.providers.${index}`,
        message: `${id} does not accept our client ID or secret: ${error.message}`,
        remedy:
          'compare client_id and client_secret_file with what is registered at the provider, and ' +
          'register a client there that may use authorization codes',
      });
    }
  }
}
