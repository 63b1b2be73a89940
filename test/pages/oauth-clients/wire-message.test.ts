/** HTTP messages are displayed without any value that would grant access. */
import { expect } from 'chai';
import { bodyInLines, parametersInLines, shortened } from '../../../src/pages/oauth-clients/wire-message.ts';

const value = (prefix: string): string => `${prefix}Abcd${'x'.repeat(35)}wxyz`;

describe('an HTTP message as displayed to a user', () => {
  it('a displayed HTTP message has one decoded parameter per line', () => {
    const sent = new URLSearchParams({ grant_type: 'refresh_token', state: 'a b&c="é' });
    expect(parametersInLines(sent, '')).to.equal('grant_type=refresh_token\n&state=a b&c="é');
    expect(parametersInLines(sent, '?')).to.match(/^\?grant_type/);
  });

  it('a displayed secret is shortened to its prefix and enough characters to distinguish it', () => {
    const secret = {
      code: value('gate_ac_'),
      code_verifier: value(''),
      client_secret: value('gate_cs_'),
      access_token: value('gate_at_'),
      refresh_token: value('gate_rt_'),
      token: value('gate_at_'),
    };
    const short = {
      code: 'gate_ac_Abcd…wxyz',
      code_verifier: 'Abcd…wxyz',
      client_secret: 'gate_cs_Abcd…wxyz',
      access_token: 'gate_at_Abcd…wxyz',
      refresh_token: 'gate_rt_Abcd…wxyz',
      token: 'gate_at_Abcd…wxyz',
    };
    const lines = Object.entries(short).map(([name, text]) => `${name}=${text}`);
    expect(parametersInLines(new URLSearchParams(secret), '')).to.equal(lines.join('\n&'));
    expect(JSON.parse(bodyInLines(JSON.stringify(secret)))).to.deep.equal(short);
    expect(shortened('gate_cs_short')).to.equal('gate_cs_…');
  });

  it('a displayed answer that is not JSON is unchanged', () => {
    for (const body of ['', 'not JSON', '<p>502</p>']) expect(bodyInLines(body)).to.equal(body);
  });
});
