/** The sign-in methods of this service, according to the settings. */
import type { PasskeySignIns } from './passkey-sign-ins.ts';
import type { UpstreamSignIns } from './upstream-providers.ts';

export interface EnabledMethods {
  readonly passwords: boolean;
  /** Undefined if the service sends no mail or does not use passwords. */
  readonly forgotPasswordUrl: string | undefined;
  readonly upstream: UpstreamSignIns;
  /** Undefined if users cannot sign in with a passkey. */
  readonly passkeys: PasskeySignIns | undefined;
}
