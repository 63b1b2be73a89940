/** The doctor checks the mail server, and sends mail only to the address given with --mail. */
import { expect } from 'chai';
import { fileWith } from '../config/configuration.ts';
import { expectWrongUsage, operatorWith, storesOf } from '../operator/run-operator.ts';
import { startMailServer } from '../support/mail-server.ts';
import { startsOn } from '../support/service.ts';
import { examine } from './doctor-findings.ts';

const FROM = 'gatehouse@example.com';

describe('operator doctor, checking mail', () => {
  const start = startsOn();
  const server = () => startMailServer(['gatehouse', 'swordfish']);
  const variables = (SMTP_URL: string) => ({
    GATEHOUSE_CONFIG: fileWith(`mail: { from: ${FROM} }`),
    SMTP_URL,
  });

  it('the doctor logs in to the mail server, but sends no mail, not even about the sign-in of its test account', async () => {
    const { url, received } = await server();
    const service = await start({ settings: { mail: { smtpUrl: url, from: FROM } } });
    const environment = {
      ...variables(url),
      ...storesOf(service),
      GATEHOUSE_ISSUER: service.issuer,
      PORT: String(service.settings.server.port),
    };
    const { of } = await examine(environment);
    expect(of('mail')).to.include({ status: 'ok' });
    expect(of('sign_out').status, 'the account signed in and approved a client').to.equal('ok');
    await service.close();
    expect(received.map(({ to }) => to)).to.deep.equal([]);
  });

  it('`doctor --mail` sends one test mail, and reports it', async () => {
    const { url, received } = await server();
    const { of } = await examine(variables(url), '--mail', 'you@example.com');
    expect(of('mail').message).to.contain('one test mail to you@example.com');
    expect(received.map(({ to }) => to)).to.deep.equal([['you@example.com']]);
    expect(received[0]?.raw).to.match(/^Subject: Test mail of Gatehouse\r$/m);
    const unset = await examine({}, '--mail', 'you@example.com');
    expect(unset.of('mail').remedy).to.contain('SMTP_URL');
    await expectWrongUsage(operatorWith({}), ['doctor --mail nobody']);
  });
});
