/** Every row of the table of sign-in (table.ts), on a real service. */
import { expect } from 'chai';
import { type Proof, withProof } from '../../src/accounts/sign-in-strength.ts';
import { type StoredSession, sessionFrom } from '../../src/provider/browser-sessions.ts';
import { startsOn } from '../support/service.ts';
import { driver } from './driver.ts';
import { AT_ONCE, ENDS_OF_A_COOKIE, ROWS, type Row, RULES } from './table.ts';

/** Names a row by its rule and by what distinguishes it from the other rows of that rule. */
function titleOf({ rule, held, required, from, events }: Row): string {
  const has = held.length > 0 ? ` with ${held.join(' and ')}` : '';
  const began = from ? `, signed in by ${from}` : '';
  return `rule ${rule}, ${RULES[rule]}: strong ${required}${has}${began}: ${events.join(', then ')}`;
}

describe('the service follows the sign-in rules in test/sign-in/table.ts', () => {
  const { check, copyAfter, addAtOnce } = driver(startsOn());
  for (const row of ROWS) {
    it(titleOf(row), () => check(row));
  }

  for (const event of ENDS_OF_A_COOKIE) {
    it(`an earlier cookie or a restored token store signs no user in after this event: ${event}`, async () => {
      expect(await copyAfter(event)).to.equal('nobody');
    });
  }

  it('a restored token store continues a session that has not ended', async () => {
    expect(await copyAfter('suspension')).to.equal('nobody');
    expect(await copyAfter('get a role')).to.equal('warned');
  });

  for (const methods of AT_ONCE) {
    it(`if several browsers add ${methods.join(', ')} as the first method at once, a password session stores one of them`, async () => {
      expect(await addAtOnce(methods)).to.equal(1);
    });
  }
});

describe('a session stores which methods proved the sign-in', () => {
  const stored = { accountId: 'acc_1', loginTs: 1, acr: '0', uid: 'uid', jti: 'cookie' };
  const proof = { by: 'provider', at: 1, issuer: 'https://a.example', acr: undefined, amr: ['otp'] };

  it('valid proofs of authentication in a stored session are returned unchanged', () => {
    const amr = [{ by: 'password', at: 1 }, { by: 'link', at: 2 }, proof].map((one) => JSON.stringify(one));
    expect(sessionFrom({ ...stored, amr })?.proofs).to.deep.equal([
      { by: 'password', at: 1 },
      { by: 'link', at: 2 },
      proof,
    ]);
  });

  it('a stored session with unreadable sign-in proofs belongs to no user', () => {
    for (const amr of [
      undefined,
      [],
      ['password'],
      ['upstream', '0'],
      ['{'],
      ['null'],
      ['"passkey"'],
      ['{"by":"passkey"}'],
      ['{"by":"passkey","at":"1"}'],
      ['{"by":"fingerprint","at":1}'],
      ['{"by":"provider","at":1,"issuer":"https://a.example","amr":"otp"}'],
      ['{"by":"password","at":1}', '{"by":"passkey","at":1'],
      ['{"by":"passkey","at":1}', '{"by":"fingerprint","at":1}'],
    ]) {
      expect(sessionFrom({ ...stored, amr } as StoredSession), JSON.stringify(amr)).to.equal(undefined);
    }
  });

  it('a weaker proof does not remove a stronger one, and a new proof replaces an equal one', () => {
    const weak = { ...proof, by: 'provider', amr: [], at: 5 } as const;
    const strong = { ...proof, by: 'provider' } as const;
    expect(withProof([{ by: 'passkey', at: 1 }, strong], weak)).to.deep.equal([{ by: 'passkey', at: 1 }, strong, weak]);
    expect(withProof([{ by: 'passkey', at: 1 }, strong], { by: 'passkey', at: 9 })).to.deep.equal([
      strong,
      { by: 'passkey', at: 9 },
    ]);
  });

  it('a session keeps its passkey proof even after many proofs by a provider', () => {
    let proofs: readonly Proof[] = [{ by: 'passkey', at: 1 }];
    for (let at = 2; at < 20; at += 1)
      proofs = withProof(proofs, { ...proof, by: 'provider', at, amr: [`method ${at}`] });
    expect(proofs).to.have.lengthOf(8);
    expect([proofs[0]?.at, proofs.at(-1)?.at]).to.deep.equal([1, 19]);
  });
});
