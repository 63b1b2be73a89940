/** The doctor's check of the sign-in providers: does each answer, and accept our client? */
import type { findProviders } from '../config/load.ts';
import type { SignInProvider } from '../config/sign-in-providers.ts';
import { type Findings, ok, problem, type Verdict, warning } from './findings.ts';

/** Checks all at once, so that none waits for another that does not answer. */
export async function checkProviders(
  findings: Findings,
  issuer: string,
  { providers, problems }: ReturnType<typeof findProviders>,
): Promise<void> {
  if (providers.length === 0) return;
  // Import these only now: most deployments have no providers.
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
    const where = `sign_in.providers.${index}`;
    const secret = `${where}.client_secret_file`;
    const unread = problems.find(({ path }) => path === secret);
    const redirectUri = callbackUrl(issuer, settings);
    const verdict = (): Verdict => {
      if (error === undefined) {
        if (redirect === 'refused') {
          return problem(
            `${id} accepts our client, and answers 400 to a sign-in that is to come back to ${redirectUri}`,
            `register ${redirectUri} as a redirect URI of client ${settings.clientId} there, character by character`,
          );
        }
        const words =
          redirect === 'registered'
            ? `and sends people back to ${redirectUri}`
            : `but does not say without a person whether ${redirectUri} is registered as a redirect URI: compare it there, or sign in once`;
        return ok(`${id} accepts our client, ${words}`, ms);
      }
      if (!(error instanceof UpstreamRefusal)) {
        return problem(
          `nobody can sign in with ${id} from this machine: ${error.message}`,
          'let this machine connect to it and trust its certificate (NODE_EXTRA_CA_CERTS for an authority of ' +
            'your own); or open {issuer}/.well-known/openid-configuration, and write its `issuer` into the ' +
            'settings character by character',
          `sign_in.providers, ${settings.issuer}`,
        );
      }
      if (unread) {
        return warning(
          `${id} answers; our secret was not tried, for ${secret} ${unread.message}`,
          'run the doctor as the user of the service, or let this one read the file',
          secret,
        );
      }
      return problem(
        `${id} does not accept our client ID or secret: ${error.message}`,
        'compare client_id and client_secret_file with what is registered at the provider, and ' +
          'register a client there that may use authorization codes',
      );
    };
    findings.add('sign_in_providers', where, verdict());
  }
}
