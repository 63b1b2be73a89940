/** The doctor's look at the providers that people sign in with: does each answer, as the one it should be? */
import type { SettingsWithoutSecrets } from '../../config/settings.ts';
import type { Findings } from './findings.ts';

/** All at once: none has to wait for another that does not answer. */
export async function checkProviders(
  findings: Findings,
  { issuer, signIn: { providers } }: Pick<SettingsWithoutSecrets, 'issuer' | 'signIn'>,
): Promise<void> {
  if (providers.length === 0) return;
  // Here, for most deployments have none.
  const { discover } = await import('../../upstream/discovery.ts');
  const { inWords } = await import('../../upstream/failures.ts');
  const { callbackUrl } = await import('../../upstream/upstream-provider.ts');
  const outcomes = await Promise.all(
    providers.map(async (provider) => {
      const start = performance.now();
      const problem = await discover(provider).then(
        () => undefined,
        (error: unknown) => inWords(error),
      );
      return { provider, problem, ms: performance.now() - start };
    }),
  );
  const check = 'sign_in_providers';
  for (const { provider, problem, ms } of outcomes) {
    const { id } = provider;
    if (problem === undefined) {
      const redirect = callbackUrl(issuer, provider);
      findings.ok(check, `${id} answers; its redirect URI must be ${redirect}`, ms);
      continue;
    }
    findings.problem({
      check,
      where: `sign_in.providers, ${provider.issuer}`,
      message: `nobody can sign in with ${id} from this machine: ${problem}`,
      remedy:
        'open {issuer}/.well-known/openid-configuration, and write its `issuer` into the settings ' +
        'character by character; or let this machine connect to it',
    });
  }
}
