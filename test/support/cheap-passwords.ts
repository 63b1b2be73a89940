/**
 * Makes the hashing of passwords a thousand times cheaper in this process, with unchanged texts: its
 * cost is on purpose, and would be a third of the work of all tests. Programs that a test starts hash
 * as in production, and accept no password that was hashed here. So slow tests, which sign the same users
 * in at both, hash as in production, except in suites that call `cheapPasswords`.
 */
import { createRequire } from 'node:module';
import type { Options } from '@node-rs/argon2';

/** The package's object, which a later `import` of its functions reads. */
const argon2: Pick<typeof import('@node-rs/argon2'), 'hash' | 'verify'> = createRequire(import.meta.url)(
  '@node-rs/argon2',
);
const { hash, verify } = argon2;

const CHEAP = { memoryCost: 8, timeCost: 1, parallelism: 1 } as const satisfies Options;
const CHEAP_TEXT = 'm=8,t=1,p=1';
const PARAMETERS = /m=\d+,t=\d+,p=\d+/;
/** Only hashes made here have a salt that begins like this, and the one that stands for no account. */
const MARKED = /^\$argon2id\$v=19\$[^$]+\$AAAAA/;
const FEWEST_KIB_IN_PRODUCTION = 19 * 1024;

/** Set by .mocharc.cjs for slow tests. */
let isCheap = process.env.TEST_PASSWORDS !== 'as in production';
let made = 0;

/** Hashes cheaply during the suite that calls this, whose users sign in only at services of this process. */
export function cheapPasswords(): void {
  const former = isCheap;
  before('hash passwords cheaply', () => {
    isCheap = true;
  });
  after('hash passwords as before', () => {
    isCheap = former;
  });
}

argon2.hash = async (password, options, signal) => {
  const { memoryCost = 0, timeCost, parallelism } = options ?? {};
  if (!isCheap || memoryCost < FEWEST_KIB_IN_PRODUCTION) return hash(password, options, signal);
  made += 1;
  const salt = Buffer.alloc(16);
  salt.writeUInt32BE(made, 12);
  salt.writeUInt32BE(process.pid, 8);
  const text = await hash(password, { ...CHEAP, salt }, signal);
  return text.replace(CHEAP_TEXT, `m=${memoryCost},t=${timeCost},p=${parallelism}`);
};

argon2.verify = (hashed, password, options, signal) => {
  const text = String(hashed);
  return verify(MARKED.test(text) ? text.replace(PARAMETERS, CHEAP_TEXT) : hashed, password, options, signal);
};
