import { expect } from 'chai';
import { loadSettings } from '../../src/config/load.ts';
import { fileWith, keysOfEnvironment, problemsOf, refusalOf, settingsOf } from './configuration.ts';

const production = {
  ...keysOfEnvironment,
  DATABASE_URL: 'postgres://gatehouse:secret@db.example.com/gatehouse',
  REDIS_URL: 'redis+sentinel://s1:26379,s2:26379/mymaster',
};

const YAML_OF_MAIL = 'mail: { from: Gatehouse <gate@example.com> }';

describe('the service reads settings and secrets from environment variables', () => {
  it('an environment variable overrides the settings file', () => {
    const yaml = `
      issuer: https://file.example.com
      server: { port: 4000, proxy_hops: 2, operators_port: 4001 }
      storage: { data_directory: ./file, redis_url: "redis://file" }
      log: { level: warn }`;
    const settings = settingsOf(yaml, {
      ...production,
      GATEHOUSE_ISSUER: 'https://auth.example.com',
      PORT: '5000',
      GATEHOUSE_OPERATORS_PORT: '5001',
      GATEHOUSE_DATA_DIR: '/var/lib/gatehouse',
      GATEHOUSE_LOG_LEVEL: 'debug',
    });
    expect(settings.issuer).to.equal('https://auth.example.com');
    expect(settings.server).to.include({ port: 5000, operatorsPort: 5001, proxyHops: 2 });
    expect(settings.storage).to.include({
      databaseUrl: production.DATABASE_URL,
      redisUrl: production.REDIS_URL,
      dataDirectory: '/var/lib/gatehouse',
    });
    expect(settings.log.level).to.equal('debug');
  });

  it('the variable PORT also changes the port of the default issuer', () => {
    expect(settingsOf('{}', { PORT: '4567' }).issuer).to.equal('http://localhost:4567');
    expect(settingsOf('{}', { PORT: '80' }).issuer).to.equal('http://localhost');
  });

  it('a variable for keys lists the current key first, and a variable with the suffix _FILE names a file', () => {
    const [current, older] = ['a'.repeat(32), 'b'.repeat(40)];
    const smtpUrl = 'smtps://gate:secret@mail.example.com';
    const settings = loadSettings({
      environment: {
        GATEHOUSE_COOKIE_KEYS: `${current}, ${older}`,
        GATEHOUSE_TOKEN_KEYS_FILE: fileWith(`${older},${current}\n`, 'tokens'),
        DATABASE_URL_FILE: fileWith('postgresql://db/gatehouse\n', 'database'),
        REDIS_URL_FILE: fileWith('rediss://:secret@redis:6380/1\n', 'redis'),
        SMTP_URL_FILE: fileWith(`${smtpUrl}\n`, 'smtp'),
      },
      file: fileWith(YAML_OF_MAIL),
    });
    expect(settings.secrets).to.deep.equal({
      cookieKeys: [current, older],
      tokenKeys: [older, current],
    });
    expect(settings.storage).to.include({
      databaseUrl: 'postgresql://db/gatehouse',
      redisUrl: 'rediss://:secret@redis:6380/1',
    });
    expect(settings.mail).to.deep.equal({ smtpUrl, from: 'Gatehouse <gate@example.com>' });
    expect(settingsOf(YAML_OF_MAIL)).not.to.have.property('mail');
  });

  it('the error for an invalid environment variable shows no secret', () => {
    const { message } = refusalOf(() =>
      settingsOf('{}', {
        GATEHOUSE_COOKIE_KEYS: `${'k'.repeat(32)},hunter2`,
        GATEHOUSE_TOKEN_KEYS: 'swordfish',
        DATABASE_URL: 'oracle://scott:tiger@db',
        REDIS_URL: 'tiger',
      }),
    );
    expect(message).not.to.match(/hunter2|swordfish|tiger|kkkk/);
    expect(message).to.contain('GATEHOUSE_COOKIE_KEYS, key 2 of 2');
    expect(message).to.contain('has 9 characters, but needs at least 32');
  });

  it('the error for an invalid URL names the variable or file that contains it', () => {
    for (const name of ['DATABASE_URL', 'REDIS_URL', 'SMTP_URL']) {
      const [problem] = problemsOf('{}', {
        [`${name}_FILE`]: fileWith('http://x:swordfish@y', name),
      });
      expect(problem?.path).to.match(new RegExp(`_url \\(from ${name}_FILE\\)$`));
      expect(JSON.stringify(problem)).not.to.contain('swordfish');
    }
  });

  it('environment variables of other programs are ignored', () => {
    settingsOf('{}', {
      // Kubernetes adds these to every pod if there is a service named gatehouse.
      GATEHOUSE_PORT: 'tcp://10.0.0.1:3000',
      GATEHOUSE_PORT_3000_TCP_ADDR: '10.0.0.1',
      GATEHOUSE_SERVICE_HOST: '10.0.0.1',
      GATEHOUSE_SERVICE_PORT: '3000',
      // Operators may set this variable for another purpose.
      GATEHOUSE_VERSION: '1.2.3',
    });
  });
});
