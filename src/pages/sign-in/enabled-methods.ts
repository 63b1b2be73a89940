/** The sign-in methods that the settings enable. */
import type { PasskeySignIns } from './passkey-sign-ins.ts';
import type { UpstreamSignIns } from './upstream-providers.ts';

export interface EnabledMethods {
  readonly passwords: boolean;
  /** Undefined if the service sends no mail or has no passwords. */
  readonly forgotPasswordUrl: string | undefined;
  readonly upstream: UpstreamSignIns;
  /** Undefined for a service without passkeys. */
  readonly passkeys: PasskeySignIns | undefined;
}
