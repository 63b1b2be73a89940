import { expect } from 'chai';
import { withoutPassword } from '../../src/config/urls.ts';
import { wordsOf } from '../support/words.ts';

describe('a URL for display', () => {
  it('a displayed URL has *** in place of its password and is otherwise unchanged', () => {
    const shown = {
      'postgres://gatehouse@db.example.com:5432/gatehouse': undefined,
      'postgres://gate:hunter2@db:5432/gatehouse?sslmode=verify-full':
        'postgres://gate:***@db:5432/gatehouse?sslmode=verify-full',
      'redis://:hunter2@redis:6379/1': 'redis://:***@redis:6379/1',
      'redis://redis:6379': undefined,
      'redis+sentinel://gate:hunter2@s1:26379,s2:26379/mymaster':
        'redis+sentinel://gate:***@s1:26379,s2:26379/mymaster',
      'rediss+cluster://:hunter2@[::1]:7000,b:7001': 'rediss+cluster://:***@[::1]:7000,b:7001',
      'smtps://me%40example.com:hunter2@mail.example.com': 'smtps://me%40example.com:***@mail.example.com',
      'https://auth.example.com': undefined,
      'Gatehouse <gatehouse@example.com>': undefined,
      '/etc/gatehouse': undefined,
    };
    for (const [url, expected] of Object.entries(shown)) {
      expect(withoutPassword(url)).to.equal(expected ?? url);
    }
  });

  it('a displayed URL never contains a password, whichever part of the URL had one', () => {
    const urls = {
      'in the query, under any name': `postgres://db/gatehouse?password=hunter2
        postgres://db/gatehouse?sslmode=require&PGPASSWORD=hunter2
        postgres://db/gatehouse?p%61ssword=hunter2 postgres://db/gatehouse?hunter2`,
      'not fully encoded': `postgres://gate:p@hunter2@db/gatehouse
        postgres://gate:1/hunter2@db/gatehouse postgres://gate:1?hunter2@db/gatehouse
        postgres://gate:1#hunter2@db/gatehouse`,
      'encoded more than necessary': `postgres://gate%3Ahunter2@db/gatehouse
        postgres://gate:%68unter2%40hunter2@db/gatehouse`,
      'in place of a user name, and once per host': `redis://hunter2@redis smtp://hunter2@mail
        redis+sentinel://:hunter2@s1:26379,:hunter2@s2:26379/mymaster`,
      'in upper case': 'POSTGRES://gate:hunter2@db/gatehouse',
    };
    const all = [...Object.values(urls).flatMap(wordsOf), 'postgres://gate:\nhunter2@db/gatehouse'];
    for (const url of all) {
      expect(withoutPassword(url), url).to.contain('***').and.not.contain('unter2');
    }
  });
});
