import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import { startsWithMail } from '../support/mail-server.ts';
import { clientCredentials } from '../support/oauth.ts';
import { apiKeyOf } from '../support/seed.ts';
import { startSeeded } from '../support/seeded.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import {
  expectWrongUsage,
  keysOf,
  operatorFor,
  operatorWith,
  refusalFrom,
  storesOf,
  valueFrom,
} from './run-operator.ts';

describe('`operator leaked` revokes all values that it finds in a text', () => {
  const { start, received } = startsWithMail();
  const on = startSeeded({ on: start });
  /** The command with the mail server of the service. */
  const run = () => {
    const { smtpUrl = '', from = '' } = on.service.settings.mail ?? {};
    const config = path.join(temporaryDirectory('leaked'), 'gatehouse.yaml');
    writeFileSync(config, JSON.stringify({ mail: { smtp_url: smtpUrl, from } }));
    return operatorFor(on.service, { ...keysOf(on.service), GATEHOUSE_CONFIG: config });
  };
  const addKey = (name: string) => apiKeyOf(on.service, on.seeded.person, name);

  it('`leaked` finds and revokes values in any text on standard input, mails their owners, and records the operator', async () => {
    const { accessToken } = await on.partner.tokens(on.clients.confidential);
    const { value } = await addKey('In a log');
    const text = `GET /?token=${accessToken}&x=1\nkey: "${value}", again ${value}; gate_cs_short`;
    const { ended, found } = await valueFrom(run(), 'leaked - --reason found', { input: text });
    // Each value once.
    expect(found).to.equal(2);
    expect(ended.map(({ kind }: { kind: string }) => kind)).to.have.members(['access_token', 'api_key']);
    expect(await on.partner.isActive(accessToken)).to.equal(false);
    expect(await on.service.apiKeys.findByValue(value)).to.equal(undefined);
    const mails = received.map((mail) => mail.text).filter((one) => one.includes('found in public'));
    expect(mails).to.have.length(2);
    expect(mails.join()).to.include('Found at: not reported');
    const [record] = await on.service.activity.of(on.seeded.person.accountId, { limit: 1 });
    expect(record).to.deep.include({ actor: 'operator' });
    expect(record?.by?.reason).to.equal('found');
    const [first, second] = [(await addKey('In a list')).value, (await addKey('In an alert')).value];
    const list = JSON.stringify([first, { secret: second, html_url: 'https://code.example/' }]);
    const listed = await valueFrom(run(), 'leaked -', { input: list });
    expect(listed.ended.map(({ name }: { name: string }) => name.slice(0, -7))).to.have.members([
      'In a list ',
      'In an alert ',
    ]);
    const again = await run()('leaked -', text);
    expect(again.output).to.include('Found 2 values; revoked the 0 that were still valid');
    expect(`${again.output}${again.errors}`).not.to.include(value);
  });

  it('`leaked` accepts a JSON list with the URL of each leak, and revokes a machine client secret at once', async () => {
    const file = path.join(temporaryDirectory('leaked'), 'report.json');
    const { machine } = on.clients;
    const { value } = await addKey('In a list');
    const list = [{ token: value, url: 'https://x.example/1' }, { token: machine.secret }, 7];
    writeFileSync(file, JSON.stringify(list));
    const { output } = await run()(['leaked', file]);
    expect(output).to.include('- client secret: Night Sync (…').and.include(', refused from 20');
    expect(received.at(-1)?.text).to.include('https[:]//x[.]example/1');
    expect((await clientCredentials(on.issuer, machine)).status).to.equal(401);
    const [{ content }] = await valueFrom(run(), `show ${machine.id}`);
    expect(content.secrets[0].leaked_at).to.be.a('string');
    const [shown] = await valueFrom(run(), 'show -', { input: machine.secret ?? '' });
    expect(shown.state).to.equal('revoked');
    expect(shown.why).to.include('found in public');
  });

  it('`leaked` accepts a value as an argument, and refuses text without values, unreadable files and missing keys', async () => {
    const { value } = await addKey('As an argument');
    const { output } = await run()(['leaked', value]);
    expect(output).to.include('As an argument');
    expect((await refusalFrom(run(), 'leaked -', 'nothing here')).code).to.equal('no_values');
    await expectWrongUsage(run(), ['leaked', 'leaked /nowhere/file']);
    const withoutKeys = operatorWith(storesOf(on.service));
    const { databaseUrl } = on.service.settings.storage;
    if (databaseUrl !== undefined) {
      expect((await refusalFrom(withoutKeys, 'leaked -', value)).code).to.equal('keys_missing');
    }
  });
});
