/** The doctor's check of the sign-in providers: does each answer, and accept our client? */
import type { findProviders } from '../config/load.ts';
import type { SignInProvider } from '../config/sign-in-providers.ts';
import { type Findings, ok, problem, type Verdict, warning } from './findings.ts';

/** Checks all providers concurrently, so that one without an answer does not delay the others. */
export async function checkProviders(
  findings: Findings,
  issuer: string,
  { providers, problems }: ReturnType<typeof findProviders>,
): Promise<void> {
  if (providers.length === 0) return;
  // Import these only when needed: most deployments have no providers.
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
            `${id} accepts our client, but answers 400 to a sign-in with the redirect URI ${redirectUri}`,
            `register ${redirectUri} as a redirect URI of client ` +
              `${settings.clientId} at the provider; it must match exactly`,
          );
        }
        const words =
          redirect === 'registered'
            ? `and the redirect URI ${redirectUri}`
            : `but shows only to people whether the redirect URI ${redirectUri} is ` +
              'registered: compare it at the provider, or sign in once';
        return ok(`${id} accepts our client, ${words}`, ms);
      }
      if (!(error instanceof UpstreamRefusal)) {
        return problem(
          `the provider ${id} cannot be used from this machine: ${error.message}`,
          'check that this machine can connect to the provider and trusts its certificate (NODE_EXTRA_CA_CERTS for ' +
            'your own authority); or open {issuer}/.well-known/openid-configuration, and copy its `issuer` exactly ' +
            'into the settings',
          `sign_in.providers, ${settings.issuer}`,
        );
      }
      if (unread) {
        return warning(
          `${id} answers; our secret was not tested, because ${secret} ${unread.message}`,
          'run the doctor as the user of the service, or make the file readable for this user',
          secret,
        );
      }
      return problem(
        `${id} does not accept our client ID or secret: ${error.message}`,
        'compare client_id and client_secret_file with those registered at the provider; ' +
          'the client must be allowed to use authorization codes',
      );
    };
    findings.add('sign_in_providers', where, verdict());
  }
}
