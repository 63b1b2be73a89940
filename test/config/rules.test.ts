import { expect } from 'chai';
import { keysOfEnvironment, pathsOf, settingsOf } from './configuration.ts';

const HTTPS = 'issuer: https://auth.example.com\nserver: { proxy_hops: 1 }';
const database = { ...keysOfEnvironment, DATABASE_URL: 'postgres://db/gatehouse' };

describe('settings that depend on each other are checked together', () => {
  it('the sender of mail must be exactly one valid address', () => {
    const senders = ['gate', 'a@b c', 'Gate gate@b.c', '<gate@b.c>', 'a@b.c\r\nBcc: x@y.z'];
    senders.push('a@b.c:25', 'Gate <a(x)@b.c>', 'a@b.c, x@y.z', '"a"@b.c');
    for (const from of senders) {
      expect(pathsOf(`mail: { from: ${JSON.stringify(from)} }`), from).to.deep.equal(['mail.from']);
    }
  });

  it('the sender of mail may have a display name in any script, and an address on this machine', () => {
    for (const from of ['Gatehouse, Inc. (EU) <a@b.c>', 'Ж <ж@ж.рф>', 'gatehouse@localhost']) {
      const { mail } = settingsOf(`mail: { from: ${JSON.stringify(from)} }`, {
        SMTP_URL: 'smtp://mail.example.com:587',
      });
      expect(mail?.from).to.equal(from);
    }
  });

  it('with an embedded database, tokens in Redis are allowed only for a loopback issuer', () => {
    const redis = { REDIS_URL: 'redis://localhost' };
    expect(pathsOf(HTTPS, redis)).to.deep.equal(['storage.redis_url (from REDIS_URL)']);
    settingsOf(HTTPS, { ...redis, ...database });
    settingsOf('{}', redis);
  });

  it('every spelling of a loopback address is recognized', () => {
    for (const host of ['localhost', 'localhost:8080', '127.0.0.1', '127.8.9.1:1', '[::1]:3000']) {
      expect(settingsOf(`issuer: http://${host}`).isLoopback, host).to.equal(true);
    }
  });

  it('demo data is allowed only in the embedded database and for a loopback issuer', () => {
    expect(settingsOf('{}').demo).to.equal(true);
    expect(settingsOf('demo: false').demo).to.equal(false);
    expect(settingsOf('{}', database).demo).to.equal(false);
    expect(pathsOf('demo: true', database)).to.deep.equal(['demo']);
    expect(pathsOf(`demo: true\n${HTTPS}`)).to.deep.equal(['demo']);
  });

  it('a refused setting does not cause errors about other settings', () => {
    expect(pathsOf('{}', { ...database, DATABASE_URL: 'mysql://db', REDIS_URL: 'x' })).to.have.members([
      'storage.database_url (from DATABASE_URL)',
      'storage.redis_url (from REDIS_URL)',
    ]);
  });
});
