/** Passwords: which ones are accepted, and how they are hashed and checked. */
import { hash, type Options, verify } from '@node-rs/argon2';
import { type Problem, Refusal } from '../../base/refusal.ts';
import { isCommonPassword } from './common-passwords.ts';
import { inTurn, type PasswordTurn } from './work.ts';

/** The length is counted in code points, as users count characters. */
const MIN_PASSWORD_LENGTH = 12;
const MAX_PASSWORD_LENGTH = 256;

interface PasswordOwner {
  readonly email: string;
  readonly name: string;
}

/** Returns the problems of a new password; none if it may be set. */
export async function checkPassword(password: string, owner: PasswordOwner): Promise<Problem[]> {
  if (!password.isWellFormed()) {
    return [{ code: 'password_not_text', message: 'Use only characters that a keyboard can type.' }];
  }
  const { length } = [...normalized(password)];
  if (length < MIN_PASSWORD_LENGTH) {
    const message = `Use at least ${MIN_PASSWORD_LENGTH} characters. Several words work well.`;
    return [{ code: 'password_too_short', message }];
  }
  if (length > MAX_PASSWORD_LENGTH) {
    const message = `Use at most ${MAX_PASSWORD_LENGTH} characters.`;
    return [{ code: 'password_too_long', message }];
  }
  if (await isCommonPassword(normalized(password), [owner.email, owner.name])) {
    const message = 'This password is too easy to guess. Choose another one.';
    return [{ code: 'password_common', message }];
  }
  return [];
}

export async function refusePassword(password: string, owner: PasswordOwner): Promise<void> {
  const problems = await checkPassword(password, owner);
  if (problems.length === 0) return;
  const remedy = problems.map(({ message }) => message).join(' ');
  throw new Refusal('password_refused', 'This password cannot be set.', remedy, { problems });
}

/** The hash contains its parameters. If the cost rises, `verifyPassword` replaces the hash. @throws TooManyPasswords */
export function hashPassword(password: string, turn: PasswordTurn): Promise<string> {
  return inTurn(turn, () => hash(normalized(password), COST));
}

/**
 * True if `presented` is the password of `passwordHash`. Without a hash (no such account, or no password set), returns
 * false after the same work, so that the time does not reveal which accounts exist.
 *
 * @param renew is called with a new hash of the correct password if the stored hash has another cost than the current
 * one; the new hash is computed in the same turn as the check
 * @throws TooManyPasswords
 */
export async function verifyPassword(
  passwordHash: string | undefined,
  presented: string,
  turn: PasswordTurn,
  renew?: (renewed: string) => void,
): Promise<boolean> {
  return inTurn(turn, async () => {
    const isEqual = await verify(passwordHash ?? DUMMY_HASH, normalized(presented));
    // Refuse a lone surrogate: it has the same hash as U+FFFD, but no accepted password contains a lone surrogate.
    const isRight = isEqual && passwordHash !== undefined && presented.isWellFormed();
    if (isRight && renew && !passwordHash.startsWith(PARAMETERS)) {
      // Ignore a failure, because the next sign-in tries again.
      await hash(normalized(presented), COST).then(renew, () => {});
    }
    return isRight;
  });
}

/**
 * Argon2id (the package's default) with twice the memory and three times the passes of OWASP's
 * minimum (19 MiB, 2). One check costs 65 ms of one core (AMD EPYC, 30 checks: median 63 ms,
 * fastest 62 ms, slowest 90 ms) on libuv's threads, never on the event loop, and 46 MiB of memory.
 */
const COST = { memoryCost: 46 * 1024, timeCost: 6, parallelism: 1 } as const satisfies Options;

const PARAMETERS = `$argon2id$v=19$m=${COST.memoryCost},t=${COST.timeCost},p=${COST.parallelism}$`;

const zeros = (bytes: number): string => Buffer.alloc(bytes).toString('base64').replaceAll('=', '');

/** Takes as long to check as any hash, but matches no password, because its salt and result are zeros. */
const DUMMY_HASH = `${PARAMETERS}${zeros(16)}$${zeros(32)}`;

/** Keyboards may compose the same character in different ways (NIST SP 800-63B-4 §3.1.1.2). */
const normalized = (password: string): string => password.normalize('NFC');
