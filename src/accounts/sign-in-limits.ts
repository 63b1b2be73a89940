/** Limits wrong passwords per account, address and browser (rule: attempt-limits.ts). */
import type { AttemptLimit, CreateAttemptLimit, Over } from '../base/attempt-limits.ts';
import { networkOf } from '../base/network-address.ts';
import { createTurnsOf } from '../storage/account-turns.ts';
import { emailKey } from './email.ts';

/** The time in which refused sign-ins are counted per browser and address. */
export const SIGN_IN_WINDOW_SECONDS = 900;
const ACCOUNT_WINDOW_SECONDS = 3_600;

/** An attempt that may be made now. It counts as wrong until the caller reports its result. */
interface SignInAttempt {
  succeed(): Promise<void>;
  /** Call this if the password was not compared, so that the attempt does not count as a guess. */
  cancel(): Promise<void>;
}

export interface TooManySignIns extends Over {
  readonly limit: 'account and address' | 'address' | 'account';
}

export type SignInLimits = ReturnType<typeof createSignInLimits>;

interface Attempt {
  readonly email: string;
  readonly address: string;
  /** Present if the account has signed in from this browser before (known-devices.ts). */
  readonly device: string | undefined;
}

/** Limits of each queue. An account has one queue for new browsers, and one for each browser that it used before. */
const TURNS = { maxWaiting: 40, maxWaitingPerCaller: 10, maxWaitMs: 5_000 };

interface Counted {
  readonly limit: AttemptLimit;
  readonly key: string;
  readonly onSuccess: 'forget' | 'give back';
}

export function createSignInLimits(parts: {
  readonly settings: {
    /** Maximum of failures per account and address together, and per browser in which the account has signed in. */
    readonly signInFailures: number;
    readonly signInFailuresPerAddress: number;
    readonly signInFailuresPerAccount: number;
  };
  readonly createAttemptLimit: CreateAttemptLimit;
}) {
  const { settings, createAttemptLimit } = parts;
  const create = (name: string, attempts: number, windowSeconds: number): AttemptLimit =>
    // If the store fails, throw instead of counting in this process: no user can sign in without the store.
    createAttemptLimit({ name, attempts, windowSeconds, onStoreUnavailable: 'throw' });
  const perDevice = create('sign_in_device', settings.signInFailures, SIGN_IN_WINDOW_SECONDS);
  const perBoth = create('sign_in_account_address', settings.signInFailures, SIGN_IN_WINDOW_SECONDS);
  const perAddress = create('sign_in_address', settings.signInFailuresPerAddress, SIGN_IN_WINDOW_SECONDS);
  const perAccount = create('sign_in_account', settings.signInFailuresPerAccount, ACCOUNT_WINDOW_SECONDS);

  const inTurn = createTurnsOf(TURNS);

  function attemptOn(counted: readonly Counted[]): SignInAttempt {
    return {
      async succeed() {
        await Promise.all(
          counted.map(({ limit, key, onSuccess }) =>
            // Forget only this user's count: an attacker's own sign-in must not clear the count of an address.
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
     * Runs an attempt, from `begin` to its result, after the earlier attempts on the account. Attempts must not run in
     * parallel: each is counted as wrong until its result is known, so correct ones could reach the limit.
     *
     * @throws AccountBusy if too many attempts wait, in total or from this address, or if this one waited too long
     */
    inTurn: <Result>({ email, address, device }: Attempt, work: () => Promise<Result>): Promise<Result> =>
      inTurn(device ?? emailKey(email), work, networkOf(address)),

    async begin({ email, address, device }: Attempt): Promise<SignInAttempt | TooManySignIns> {
      if (device !== undefined && !(await perDevice.count(device))) {
        return attemptOn([{ limit: perDevice, key: device, onSuccess: 'forget' }]);
      }
      // Also count attempts on accounts that do not exist.
      const account = emailKey(email);
      const network = networkOf(address);
      const limits = [
        // Keep this limit first: after it is reached, attempts on made-up accounts must not create further counters.
        ['address', perAddress, network, 'give back'],
        ['account and address', perBoth, `${account} ${network}`, 'forget'],
        // Keep this limit last: attempts that other limits refuse must not count against the whole account.
        ['account', perAccount, account, 'give back'],
      ] as const;
      const counted: Counted[] = [];
      for (const [name, limit, key, onSuccess] of limits) {
        const over = await limit.count(key);
        if (over) {
          // Undo the counts of the limits above: the password is not checked, so this was no guess.
          await attemptOn(counted).cancel();
          return { ...over, limit: name };
        }
        counted.push({ limit, key, onSuccess });
      }
      return attemptOn(counted);
    },
  };
}
