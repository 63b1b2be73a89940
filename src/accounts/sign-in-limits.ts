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
  /** Per account and address, and per browser in which the account has signed in before. */
  readonly signInFailures: number;
  /** Per address, over all accounts. */
  readonly signInFailuresPerAddress: number;
  readonly signInFailureWindowSeconds: number;
  /** Per account, over all addresses. */
  readonly signInFailuresPerAccount: number;
  readonly signInAccountWindowSeconds: number;
}

/** A password that may be checked. It is already counted as wrong; the caller reports the result. */
interface SignInAttempt {
  succeed(): Promise<void>;
  /** Call this if the password was not compared, so that the attempt was no guess. */
  cancel(): Promise<void>;
}

export interface TooManySignIns extends Over {
  readonly limit: 'account and address' | 'address' | 'account';
}

export type SignInLimits = ReturnType<typeof createSignInLimits>;

/** A limit that counted the attempt, and how to correct the count if the password is right. */
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
            // Forget only this user's failures: otherwise an attacker with an account of their own
            // could clear the count of a whole address.
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
     * @param device the browser, if this account has signed in there before (known-devices.ts).
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
        // This must be last, so that only attempts within the other limits count for the whole account.
        ['account', perAccount, account, 'give back'],
      ] as const;
      const counted: Counted[] = [];
      for (const [name, limit, key, onSuccess] of limits) {
        const over = await limit.count(key);
        if (over) {
          // The password will not be compared, so the previous limits must not count it as a guess.
          await attemptOn(counted).cancel();
          return { ...over, limit: name };
        }
        counted.push({ limit, key, onSuccess });
      }
      return attemptOn(counted);
    },
  };
}
