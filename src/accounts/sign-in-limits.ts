/** Limits wrong passwords per account, address and browser (rule: attempt-limits.ts). */
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

/** A password that may be compared, counted as wrong already. The caller reports how it ended. */
interface SignInAttempt {
  succeed(): Promise<void>;
  /** For an attempt that was no guess, because nothing was compared. */
  cancel(): Promise<void>;
}

export interface TooManySignIns extends Over {
  readonly limit: 'account and address' | 'address' | 'account';
}

export type SignInLimits = ReturnType<typeof createSignInLimits>;

/** A limit that counted the attempt, and what happens to the count if the password is right. */
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
    // Without the stores no user can sign in, so no request should wait for each limit in turn.
    createAttemptLimit({ name, attempts, windowSeconds, onStoreUnavailable: 'throw', log });
  const window = settings.signInFailureWindowSeconds;
  const perDevice = create('sign_in_device', settings.signInFailures, window);
  const perBoth = create('sign_in_account_address', settings.signInFailures, window);
  const perAddress = create('sign_in_address', settings.signInFailuresPerAddress, window);
  const perAccount = create(
    'sign_in_account',
    settings.signInFailuresPerAccount,
    settings.signInAccountWindowSeconds,
  );

  function attemptOn(counted: readonly Counted[]): SignInAttempt {
    return {
      async succeed() {
        await Promise.all(
          counted.map(({ limit, key, onSuccess }) =>
            // Forget only what this user mistyped here, not other users' failures: otherwise an
            // attacker with an account of their own could clear the count of an address.
            onSuccess === 'forget' ? limit.forget(key) : limit.refund(key),
          ),
        );
      },
      async cancel() {
        await Promise.all(counted.map(({ limit, key }) => limit.refund(key)));
      },
    };
  }

  return {
    /**
     * @throws StorageUnavailable if the attempt cannot be counted.
     * @param device the browser, if it is one that knows this account (see known-devices.ts).
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
        return attemptOn([{ limit: perDevice, key: device, onSuccess: 'forget' }]);
      }
      // Count unknown accounts like any other.
      const account = emailKey(email);
      const network = networkOf(address);
      const limits = [
        ['account and address', perBoth, `${account} ${network}`, 'forget'],
        ['address', perAddress, network, 'give back'],
        // Last: only attempts that pass the other limits are counted against the whole account.
        ['account', perAccount, account, 'give back'],
      ] as const;
      const counted: Counted[] = [];
      for (const [name, limit, key, onSuccess] of limits) {
        const over = await limit.count(key);
        if (over) {
          // The password will not be compared, so the limits before must not count it as a guess.
          await attemptOn(counted).cancel();
          return { ...over, limit: name };
        }
        counted.push({ limit, key, onSuccess });
      }
      return attemptOn(counted);
    },
  };
}
