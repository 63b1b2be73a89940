import { expect } from 'chai';
import { findValues } from '../../src/authorizations/leaked-report.ts';
import { withChecksum } from '../../src/base/random-id.ts';
import { shapeOf } from '../../src/base/value-faults.ts';
import { publicForm, valuesIn } from '../../src/operator/show/find.ts';

const x = (length: number): string => 'x'.repeat(length);
const TOKEN = withChecksum(`gate_at_${x(89)}`);
const REFRESH = withChecksum(`gate_rt_${x(66)}`);
const SECRET = withChecksum(`gate_cs_${x(43)}`);
const CLIENT = `gate_ci_${x(22)}`;
const ACCOUNT = `acc_X${x(15)}`;
const LINK = `${'aB3'.repeat(14)}c`;
const EMAIL = 'kim@example.com';
const encoded = (text: string): string => Buffer.from(text).toString('base64');

describe('the recognition of tokens, codes, secrets, API keys and client ids', () => {
  it('each kind of value that Gatehouse issues is recognized', () => {
    for (const [value, kind] of [
      [TOKEN, 'access_token'],
      [withChecksum(`gate_mt_${x(43)}`), 'machine_token'],
      [withChecksum(`gate_rt_${x(66)}`), 'refresh_token'],
      [withChecksum(`gate_rt_${x(73)}`), 'refresh_token'],
      [withChecksum(`gate_ac_${x(65)}`), 'code'],
      [withChecksum(`gate_cs_${x(43)}`), 'client_secret'],
      [withChecksum(`gate_key_${x(43)}`), 'api_key'],
      [`gate_ci_${x(22)}`, 'client_id'],
    ] as const) {
      expect(shapeOf(value)).to.deep.equal({ kind, faults: [] });
    }
  });

  it('the first fault of a malformed value is named, without any part that may be secret', () => {
    for (const [value, fault] of [
      ['', 'is empty'],
      [TOKEN.slice(0, -3), 'is 3 characters short of 103: it was cut off'],
      [TOKEN.slice(0, -6), 'is 6 characters short of 103: it was cut off'],
      [TOKEN.replace('xx', 'xy'), 'has a wrong checksum: it was mistyped or cut off, or is not a value of Gat'],
      [`gate_rt_${x(72)}`, 'has a wrong checksum'],
      [withChecksum(`gate_rt_${x(66)}`).replace('xx', 'xy'), 'has a wrong checksum'],
      [`${TOKEN}zz`, 'is 2 characters longer than the allowed 103'],
      [`gate_ci_${x(24)}`, 'is 2 characters longer than the allowed 30'],
      [`${TOKEN}\n`, 'has a line break after character 103'],
      [`${TOKEN}\0`, 'has a NUL character after character 103'],
      [`${TOKEN} `, 'has a space after character 103'],
      [`${TOKEN}\u200b`, 'has the character U+200B after character 103'],
      [`Bearer ${TOKEN}`, "has 'B' and 6 more in front of gate_at_"],
      [`"${TOKEN}"`, `has '"' in front of gate_at_`],
      [`gate_at_${x(40)}%2B${x(22)}`, "has '%' and 24 more after character 48"],
      ['eyJhbGciOiJub25lIn0.e30.', 'is a JWT, and does not begin'],
      ['swordfish', 'does not begin with a prefix'],
      [TOKEN.toUpperCase(), 'is in the wrong letter case: copy it again'],
    ] as const) {
      expect(shapeOf(value).faults[0], JSON.stringify(value)).to.contain(fault);
    }
  });
});

describe('tokens, links, IDs and addresses are found in any text', () => {
  const found = (text: string) => valuesIn(text).map((one) => (one.faults.length > 0 ? 'malformed' : one.text));

  it('`show` and `leaked` find a secret whatever surrounds it, even across line breaks', () => {
    for (const text of [
      `{"message":"{\\"token\\":\\"${TOKEN}\\"}"}`,
      `“${TOKEN}” and **${TOKEN}**`,
      `Bearer%20${TOKEN}`,
      `token=3D${TOKEN}`,
      `A=${TOKEN}\0B=1`,
      `${TOKEN}_ and _${TOKEN}_`,
      `token=${TOKEN.slice(0, 20)}=\r\n${TOKEN.slice(20)} end`,
      `> ${TOKEN.slice(0, 5)}\n> ${TOKEN.slice(5)}\n> more`,
      `https://app.example/#access_token=${TOKEN}&state=1`,
      `?next=https%253A%252F%252Fx%252F%253Ftoken%253D${TOKEN}%2526a`,
      `a chat shows ${TOKEN.replaceAll('_', '\\_')}`,
      `${TOKEN.slice(0, 30)}\u00ad${TOKEN.slice(30, 60)}\u200b${TOKEN.slice(60)} was copied from a page`,
      `export TOKEN=${TOKEN.slice(0, 40)}\\\n  ${TOKEN.slice(40)}`,
      `a terminal: ${TOKEN.slice(0, 40)}   \n${TOKEN.slice(40)}`,
      Buffer.from(`Token: ${TOKEN}\r\n`, 'utf16le').toString(),
      Buffer.from(`\ufeff${TOKEN}\r\n`, 'utf16le').toString(),
      `Authorization: Basic ${encoded(`reporting-service:${TOKEN}`)}`,
    ]) {
      expect(found(text), text).to.deep.equal([TOKEN]);
      expect([...new Set(findValues(text).map(({ token }) => token))], text).to.deep.equal([TOKEN]);
    }
    const both = `https://app.example/?access_token=${TOKEN}&refresh_token=${REFRESH}`;
    expect(found(both)).to.deep.equal([TOKEN, REFRESH]);
  });

  it('IDs, links and addresses are found in URLs, quotes and escaped JSON', () => {
    for (const [text, ...values] of [
      [`https://${CLIENT}:${SECRET}@auth.example/`, CLIENT, SECRET],
      [`POST /profile/oauth-clients/${CLIENT}/edit`, CLIENT],
      [`{\\"account\\":\\"${ACCOUNT}\\"}`, ACCOUNT],
      [`“${ACCOUNT}”, /accounts/${ACCOUNT}/x and ${ACCOUNT}.csv`, ACCOUNT],
      [`'${ACCOUNT}/${CLIENT}'`, `${ACCOUNT}/${CLIENT}`],
      [`connection=${ACCOUNT}%2F${CLIENT}`, `${ACCOUNT}/${CLIENT}`],
      [`https://app.example/reset?token=${LINK}&email=kim@example.com`, LINK, 'kim@example.com'],
      [`[reset](https://app.example/reset?token=${LINK}), then`, LINK],
      [`https://app.example/reset?token=${LINK}, then`, LINK],
      [`?next=https%3A%2F%2Fx.example%2F%3Ftoken%3D${LINK}`, LINK],
      [`${TOKEN.slice(0, -3)},${TOKEN}`, 'malformed', TOKEN],
      [`"authorization":"Basic ${encoded(`${CLIENT}:${SECRET}`)}"`, CLIENT, SECRET],
      [`log_${ACCOUNT}.txt`, ACCOUNT],
      [`client_id_${CLIENT}`, CLIENT],
      [`_${ACCOUNT}_ and ${CLIENT}-`, ACCOUNT, CLIENT],
      [`{"connection":"${ACCOUNT}\\/${CLIENT}"}`, `${ACCOUNT}/${CLIENT}`],
      ["o'brien@example.com", "o'brien@example.com"],
      ["'kim@example.com' and o'brien@example.com.", 'kim@example.com', "o'brien@example.com"],
    ] as const) {
      expect(found(text), text).to.deep.equal(values);
    }
  });

  it('an escape sequence before a value is not taken for a part of it', () => {
    for (const [text, ...values] of [
      [`{"text":"Owner:\\n${EMAIL}"}`, EMAIL],
      [`{"text":"\\u003c${EMAIL}\\u003e"}`, EMAIL],
      [`{"text":"j\\u00f6rg@example.com"}`, 'jörg@example.com'],
      [`{"log":"{\\"text\\":\\"Owner:\\\\n${EMAIL}\\"}"}`, EMAIL],
      [`{"text":"a\\n${ACCOUNT}\\t${CLIENT}\\u0026token=${LINK}"}`, ACCOUNT, CLIENT, LINK],
      // Here the letter belongs to the name.
      ['{"user":"CORP\\\\nora@example.com"}', 'nora@example.com'],
      ['the user CORP\\nora@example.com', 'nora@example.com'],
      [`\u001b[36m${EMAIL}\u001b[0m \u001b[36m${ACCOUNT}\u001b[0m`, EMAIL, ACCOUNT],
      [`<a href=3D"https://x.example/?login_hint=3D${EMAIL}&token=3D${LINK}">`, EMAIL, LINK],
      [`${x(40)} https://x.example/reset?token=3D${LINK.slice(0, 9)}=\r\n${LINK.slice(9)} end`, LINK],
      [`EMPTY=\n${EMAIL}`, EMAIL],
      // PowerShell begins a file with a byte order mark.
      [Buffer.from(`\ufeff${EMAIL} ${ACCOUNT}`, 'utf16le').toString(), EMAIL, ACCOUNT],
      [`https://x.example/reset?token=3D${LINK.slice(2)}`, `3D${LINK.slice(2)}`],
    ] as const) {
      expect(found(text), text).to.deep.equal(values);
    }
  });

  it('an email address is found even directly next to a quote, a name, a parameter or an origin', () => {
    for (const [text, ...values] of [
      [`{"origin":"https://app.example","email":"${EMAIL}"}`, EMAIL],
      [`https://app.example,${EMAIL}`, EMAIL],
      [`'${EMAIL}'`, EMAIL],
      [`“${EMAIL}”`, EMAIL],
      [`_${EMAIL}_`, EMAIL],
      [`${EMAIL}&token=${LINK}`, EMAIL, LINK],
      [`x.y=${EMAIL}`, EMAIL],
      [`login_hint%3D${EMAIL}`, EMAIL],
      ['from j%C3%B6rg@example.com and %F6%3Dkim@example.com', 'jörg@example.com', EMAIL],
      ['a&b=c@example.com', 'a&b=c@example.com'],
    ] as const) {
      expect(found(text), text).to.deep.equal(values);
    }
  });

  it('a truncated token is reported as malformed, but an ordinary word that begins like a token is ignored', () => {
    for (const length of [43, 22]) {
      const [cut] = valuesIn(TOKEN.slice(0, length));
      expect(cut.faults.join()).to.contain('it was cut off');
    }
    expect(found(`see ${TOKEN.slice(0, -3)} and ${ACCOUNT}`)).to.deep.equal(['malformed', ACCOUNT]);
    expect(found(`aggregate_key_identifier gate_at_… ${ACCOUNT}`)).to.deep.equal([ACCOUNT]);
    expect(found(`gate_key_rotation and gate_at_beginning ${ACCOUNT}`)).to.deep.equal([ACCOUNT]);
    expect(found(`counterrevolutionaries ${ACCOUNT}`)).to.deep.equal([ACCOUNT]);
    expect(found(`investigate_at_home_with_friends ${ACCOUNT}`)).to.deep.equal([ACCOUNT]);
    expect(found(`key_fingerprint_algo and org_structure-version ${ACCOUNT}`)).to.deep.equal([ACCOUNT]);
  });

  it('text that may be a secret of another service is not shown', () => {
    for (const [text, shown] of [
      [`id:${SECRET.slice(0, 45)}@auth.example`, ''],
      ['postgres://u:s3cret@db.example/x', ''],
      ['redis://:p4ss@redis.example', ''],
      ['pk_live_0123456789', ''],
      ['aB3defghijklmnopqrstuv', '…stuv'],
      ['s3cret@other.example', '…@other.example'],
    ] as const) {
      expect(
        valuesIn(text).map((one) => publicForm(one, true)),
        text,
      ).to.deep.equal([shown]);
    }
  });
});
