import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import { operatorWith, valueFrom } from './run-operator.ts';

const PUBLISHED = path.join(import.meta.dirname, '../../config/import.schema.json');

describe('the schema of an import', () => {
  const run = operatorWith({});

  it('is published as it is: `npm run --silent operator -- import --schema > config/import.schema.json`', async () => {
    const { exitCode, output } = await run(['import', '--schema']);
    expect(exitCode).to.equal(0);
    expect(readFileSync(PUBLISHED, 'utf8')).to.equal(output);
    expect(await valueFrom(run, ['import', '--schema'])).to.deep.equal(JSON.parse(output));
  });

  it('describes every type of line and each of its keys, and allows no other', () => {
    const { oneOf } = JSON.parse(readFileSync(PUBLISHED, 'utf8'));
    const types = oneOf.map((line: { properties: { type: { const: string } } }) => {
      return line.properties.type.const;
    });
    expect(types).to.have.members([
      ...['organization', 'warehouse', 'account', 'membership', 'warehouse_rights'],
    ]);
    for (const { description, properties, additionalProperties } of oneOf) {
      expect(description).to.be.a('string');
      expect(additionalProperties).to.equal(false);
      const { type, ...keys } = properties;
      for (const [name, key] of Object.entries(keys))
        expect(key, name).to.have.property('description');
    }
  });
});
