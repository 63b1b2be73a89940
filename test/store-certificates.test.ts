/** TLS to PostgreSQL and Redis: an invalid certificate is refused with a remedy. */
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { expect } from 'chai';
import pg from 'pg';
import { explained, troubleOf } from '../src/service/startup-errors.ts';
import { failureOf } from './storage/waiting.ts';
import { createPerson } from './support/person.ts';
import { freshMigratedDatabaseUrl, startPostgresServer } from './support/postgres-server.ts';
import { freePort } from './support/programs.ts';
import { freshRedisUrl, inRedis, startRedisServer } from './support/redis-server.ts';
import { describeOn, openssl, postgresServer, redisServer, required } from './support/requirements.ts';
import { startsOn } from './support/service.ts';
import { temporaryDirectory } from './support/temporary-directory.ts';

const WRONG: readonly (readonly [what: string, made: Made, remedy: RegExp])[] = [
  ['from an unknown CA', { authority: 'other' }, /NODE_EXTRA_CA_CERTS/],
  ['that is self-signed', { authority: undefined }, /NODE_EXTRA_CA_CERTS/],
  ['that has expired', { authority: 'ours', days: '-1' }, /has expired or is not yet valid: renew it/],
  ['for another host', { authority: 'ours', host: 'db.example' }, /is for other host names/],
];

interface Made {
  readonly authority: 'ours' | 'other' | undefined;
  readonly days?: string;
  readonly host?: string;
}

const folder = temporaryDirectory('certificates');
const file = (name: string): string => path.join(folder, name);
const NEW_KEY = '-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes';
const run = (words: string): void => {
  execFileSync(required(openssl), words.split(' '), { cwd: folder, stdio: 'pipe' });
};

function makeAuthority(name: string): string {
  run(`req -x509 ${NEW_KEY} -keyout ${name}.key -out ${name}.crt -days 2 -subj /CN=${name}`);
  return readFileSync(file(`${name}.crt`), 'utf8');
}

/** Writes `server.key` and `server.crt`. */
function makeCertificate({ authority, days = '1', host = 'localhost' }: Made): void {
  const by = authority ? `-CA ${authority}.crt -CAkey ${authority}.key -CAcreateserial` : '-signkey server.key';
  writeFileSync(file('names'), `subjectAltName=DNS:${host}`);
  run(`req ${NEW_KEY} -keyout server.key -out server.csr -subj /CN=store`);
  run(`x509 -req -in server.csr -out server.crt -days ${days} -extfile names ${by}`);
}

/** Makes the PostgreSQL server write the files itself, because it runs as another user. */
async function giveToPostgres(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  for (const name of ['server.crt', 'server.key']) {
    const lines = readFileSync(file(name), 'utf8').trim().split('\n');
    const rows = lines.map((line) => `(${client.escapeLiteral(line)})`).join();
    await client.query(`COPY (VALUES ${rows}) TO PROGRAM 'umask 077; cat > ${name}'`);
  }
  await client.query("ALTER SYSTEM SET ssl = 'on'");
  await client.query('SELECT pg_reload_conf()');
  await client.end();
}

describeOn([postgresServer, redisServer, openssl], 'TLS to the stores', () => {
  const start = startsOn();
  const trusted = getCACertificates();
  let stores: Record<'postgresql' | 'redis', () => Promise<{ databaseUrl: string; redisUrl: string }>>;
  let use: (made: Made) => Promise<void>;

  before(async () => {
    makeAuthority('other');
    setDefaultCACertificates([...trusted, makeAuthority('ours')]);
    makeCertificate({ authority: 'ours' });
    const postgres = await startPostgresServer();
    const tlsPort = await freePort();
    const redis = await startRedisServer({
      'tls-port': String(tlsPort),
      'tls-auth-clients': 'no',
      'tls-ca-cert-file': file('ours.crt'),
      'tls-cert-file': file('server.crt'),
      'tls-key-file': file('server.key'),
    });
    const databaseUrl = new URL(await postgres.createDatabase());
    databaseUrl.hostname = 'localhost';
    databaseUrl.searchParams.set('sslmode', 'verify-full');
    stores = {
      postgresql: async () => ({
        databaseUrl: databaseUrl.href,
        redisUrl: await freshRedisUrl(),
      }),
      redis: async () => ({
        databaseUrl: await freshMigratedDatabaseUrl(),
        redisUrl: `rediss://localhost:${tlsPort}`,
      }),
    };
    use = async (made) => {
      makeCertificate(made);
      await giveToPostgres(postgres.url);
      const files = ['tls-cert-file', file('server.crt'), 'tls-key-file', file('server.key')];
      await inRedis(redis.url, (administrator) => administrator.call('CONFIG', 'SET', ...files));
    };
  });
  after(() => setDefaultCACertificates(trusted));

  for (const name of ['postgresql', 'redis'] as const) {
    it(`a valid ${name} certificate is accepted`, async () => {
      await use({ authority: 'ours' });
      const { issuer } = await start({ settings: { storage: await stores[name]() } });
      expect((await createPerson(issuer).get('/login')).status).to.equal(200);
    });

    for (const [what, made, remedy] of WRONG) {
      it(`a ${name} certificate ${what} is refused at once with a remedy`, async () => {
        await use(made);
        const error = await failureOf(start({ settings: { storage: await stores[name]() } }));
        expect(explained(error))
          .to.match(remedy)
          .and.include(name === 'redis' ? 'REDIS_URL' : '');
        expect(troubleOf(error)?.mayPass, explained(error)).to.equal(false);
      });
    }
  }
});
