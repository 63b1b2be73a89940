/** The files in config/: the settings files to start from, and the schema for editors. */
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import { parse } from 'yaml';
import { z } from 'zod';
import { isHeading, knownSettings } from '../../src/config/schema/known-settings.ts';
import { settingsFile } from '../../src/config/schema/schema.ts';
import { defaultFile } from '../../src/config/settings-file.ts';
import { valueAt } from '../../src/config/validate.ts';
import { checkSettings, keysOfEnvironment, refusalOf, settingsOf } from './configuration.ts';

const directory = path.dirname(defaultFile);
const shipped = (name: string): string => readFileSync(path.join(directory, name), 'utf8');
const SCHEMA = 'gatehouse.schema.json';
/** The installation folder that the systemd units expect. */
const [, INSTALLED] =
  /^WorkingDirectory=(.*)$/m.exec(
    readFileSync(new URL('../../deploy/systemd/gatehouse@.service', import.meta.url), 'utf8'),
  ) ?? [];
const yamlFiles = readdirSync(directory).filter((name) => name.endsWith('.yaml'));

describe('config/gatehouse.yaml', () => {
  const text = shipped('gatehouse.yaml');

  it('config/gatehouse.yaml has the same effect as no settings file', () => {
    expect(checkSettings({ environment: {}, file: defaultFile })).to.deep.equal(settingsOf('{}'));
  });

  it('config/gatehouse.yaml shows every setting with its default', () => {
    const everything = parse(text.replace(/^( *)# ([a-z_]+: \S+)$/gm, '$1$2'));
    for (const { name, path: steps, defaultValue } of knownSettings.values()) {
      const value = valueAt(everything, steps);
      expect(value, name).to.not.equal(undefined);
      if (defaultValue !== undefined) expect(value, name).to.equal(defaultValue);
    }
  });
});

describe('config/production.example.yaml', () => {
  it('the example settings for production are complete once the environment has the URLs and secrets', () => {
    const settings = checkSettings({
      file: path.join(directory, 'production.example.yaml'),
      environment: {
        ...keysOfEnvironment,
        DATABASE_URL: 'postgres://gatehouse:x@db.example.com:5432/gatehouse?sslmode=verify-full',
        REDIS_URL: 'rediss://:x@redis.example.com:6379',
        SMTP_URL: 'smtp://gatehouse:x@mail.example.com:587',
      },
    });
    expect(settings).to.include({ isLoopback: false, demo: false });
    expect(settings.server.proxyHops).to.equal(1);
    expect(settings.mail).to.include({ from: 'Gatehouse <gatehouse@example.com>' });
  });
});

describe('config/container.yaml', () => {
  it('config/container.yaml listens on all addresses, requires external stores, and leaves the rest to variables', () => {
    const file = path.join(directory, 'container.yaml');
    const environment = { ...keysOfEnvironment, GATEHOUSE_ISSUER: 'https://auth.example.com' };
    expect(refusalOf(() => checkSettings({ file, environment })).message).to.include('DATABASE_URL');
    const database = { DATABASE_URL: 'postgres://db/gatehouse', REDIS_URL: 'redis://redis' };
    const { server } = checkSettings({ file, environment: { ...environment, ...database } });
    expect(server).to.include({ host: '0.0.0.0', operatorsHost: '0.0.0.0', proxyHops: 1 });
  });
});

describe('config/gatehouse.schema.json', () => {
  const schema = JSON.parse(shipped(SCHEMA));
  const validator = z.fromJSONSchema(schema);
  const accepts = (yaml: string): boolean => validator.safeParse(parse(yaml) ?? {}).success;

  it('the JSON Schema describes each setting with its default', () => {
    for (const { name, path: steps, defaultValue, expectation } of knownSettings.values()) {
      const member = steps.flatMap((step) => ['properties', step]);
      expect(valueAt(schema, [...member, 'description']), name).to.include(expectation?.accepts);
      expect(valueAt(schema, [...member, 'default']), name).to.equal(defaultValue);
    }
    for (const name of Object.keys(settingsFile.shape).filter(isHeading)) {
      expect(schema.properties[name]).to.include({ additionalProperties: false });
    }
  });

  it('the JSON Schema accepts the shipped settings files, whose first line names it for editors', () => {
    expect(yamlFiles).to.have.lengthOf(3);
    for (const name of yamlFiles) {
      const text = shipped(name);
      expect(accepts(text), name).to.equal(true);
      // The example is copied to another folder, so it names the schema by its installed path.
      const folder = name.includes('example') ? `${INSTALLED}/config` : '.';
      expect(text.split('\n')[0]).to.equal(`# yaml-language-server: $schema=${folder}/${SCHEMA}`);
    }
  });

  it('the JSON Schema accepts and refuses the same settings as the service', () => {
    const valid = ['{}', 'server:\nlog: { level: info }', 'tokens: { absolute_age: off, retry_window: 90s }'];
    for (const yaml of valid) {
      settingsOf(yaml);
      expect(accepts(yaml), yaml).to.equal(true);
    }
    const invalid = [
      'server: { prot: 1 }',
      'server: { port: 0 }',
      'limits: 5',
      'tokens: { retry_window: 60 }',
      'log: { level: loud }',
      'issuer: ""',
    ];
    for (const yaml of invalid) {
      expect(() => settingsOf(yaml), yaml).to.throw('The configuration has a problem');
      expect(accepts(yaml), yaml).to.equal(false);
    }
  });
});
