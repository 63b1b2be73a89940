/** How many wrong passwords there may be, for whom and from where (rule: attempt-limits.ts). */
import type {
  AttemptLimit,
  AttemptLimitOptions,
  CreateAttemptLimit,
  Over,
} from '../base/attempt-limits.ts';
import { networkOf } from '../base/network-address.ts';
import { emailKey } from './email.ts';

interface SignInLimitSettings {
  /** Per account and address, and per browser that knows the account. */
  readonly signInFailures: number;
  /** Per address, over all accounts. */
  readonly signInFailuresPerAddress: number;
  readonly signInFailureWindowSeconds: number;
  /** Per account, over all addresses. */
  readonly signInFailuresPerAccount: number;
  readonly signInAccountWindowSeconds: number;
}

/** A password that may be compared, counted as wrong already. Whoever began it says how it ended. */
interface SignInAttempt {
  succeed(): Promise<void>;
  /** It was no guess: nothing was compared. */
  cancel(): Promise<void>;
}

export interface TooManySignIns extends Over {
  readonly limit: 'account and address' | 'address' | 'account';
}

export type SignInLimits = ReturnType<typeof createSignInLimits>;

/** Counted for one attempt, with what becomes of it when the password is right. */
interface Counted {
  readonly limit: AttemptLimit;
  readonly key: string;
  readonly onSuccess: 'forget' | 'give back';
}

export function createSignInLimits({
  settings,
  createAttemptLimit,
  log,
}: {
  readonly settings: SignInLimitSettings;
  readonly createAttemptLimit: CreateAttemptLimit;
  readonly log: AttemptLimitOptions['log'];
}) {
  const create = (name: string, attempts: number, windowSeconds: number): AttemptLimit =>
    // Without the stores nobody signs in, so nobody need wait for each of the limits in turn.
    createAttemptLimit({ name, attempts, windowSeconds, whenAway: 'throw', log });
  const window = settings.signInFailureWindowSeconds;
  const perDevice = create('sign_in_device', settings.signInFailures, window);
  const perBoth = create('sign_in_account_address', settings.signInFailures, window);
  const perAddress = create('sign_in_address', settings.signInFailuresPerAddress, window);
  const perAccount = create(
    'sign_in_account',
    settings.signInFailuresPerAccount,
    settings.signInAccountWindowSeconds,
  );

  function begun(counted: readonly Counted[]): SignInAttempt {
    return {
      async succeed() {
        await Promise.all(
          counted.map(({ limit, key, onSuccess }) =>
            // What this person mistyped here is settled; the failures of others elsewhere are not,
            // or somebody with an account of their own could clear the count of an address.
            onSuccess === 'forget' ? limit.forget(key) : limit.giveBack(key),
          ),
        );
      },
      async cancel() {
        await Promise.all(counted.map(({ limit, key }) => limit.giveBack(key)));
      },
    };
  }

  return {
    /**
     * @throws StorageUnavailable when it cannot be counted.
     * @param device the browser that knows this account, if it is one (see known-devices.ts).
     */
    async begin({
      email,
      address,
      device,
    }: {
      readonly email: string;
      readonly address: string;
      readonly device: string | undefined;
    }): Promise<SignInAttempt | TooManySignIns> {
      if (device !== undefined && !(await perDevice.count(device))) {
        return begun([{ limit: perDevice, key: device, onSuccess: 'forget' }]);
      }
      // Unknown accounts are counted like any other.
      const account = emailKey(email);
      const network = networkOf(address);
      const limits = [
        ['account and address', perBoth, `${account} ${network}`, 'forget'],
        ['address', perAddress, network, 'give back'],
        // Last: only what gets past the others counts against the account everywhere.
        ['account', perAccount, account, 'give back'],
      ] as const;
      const counted: Counted[] = [];
      for (const [name, limit, key, onSuccess] of limits) {
        const over = await limit.count(key);
        if (over) {
          // It will not be looked at, so it is no guess for those before.
          await begun(counted).cancel();
          return { ...over, limit: name };
        }
        counted.push({ limit, key, onSuccess });
      }
      return begun(counted);
    },
  };
}
