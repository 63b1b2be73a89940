/** The overrides of oidc-provider are for the installed version. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { expect } from 'chai';
import { ENGINE_VERSION, OVERRIDES } from '../../src/provider/engine-overrides.ts';

describe('the overrides of oidc-provider', () => {
  it('the overrides of oidc-provider are for the installed version (after an upgrade, check each)', () => {
    const { version } = createRequire(import.meta.url)('oidc-provider/package.json');
    expect(version).to.equal(ENGINE_VERSION);
  });

  it('each override of oidc-provider names a test that exists', () => {
    for (const { member, test } of OVERRIDES) {
      const [file, title] = test;
      const text = readFileSync(new URL(file, import.meta.url), 'utf8');
      expect(text.split(title), member).to.have.length(2);
    }
  });
});
