/** Opens damaged data directories, for the quick and the slow tests. */
import { readdirSync } from 'node:fs';
import { expect } from 'chai';
import { openPatiently } from '../support/databases.ts';
import { freshDataDirectory } from '../support/embedded-postgres.ts';

/** Each test of the suite that calls this gets a data directory of its own, in `on.directory`. */
export function ownDataDirectory() {
  const on = { directory: '', refusal, refuses };

  beforeEach(async () => {
    on.directory = await freshDataDirectory();
  });

  /** Returns the error with which opening the directory fails. */
  async function refusal(): Promise<Error & { code?: string }> {
    try {
      const database = await openPatiently({ dataDirectory: on.directory, sharing: 'own' });
      await database.close();
    } catch (error) {
      return error as Error;
    }
    throw new Error('the directory was opened');
  }

  /** Tests that the directory is refused after each kind of damage. */
  function refuses(damages: Record<string, () => void>, expected = 'data_directory_damaged'): void {
    for (const [what, damage] of Object.entries(damages)) {
      it(`a data directory with ${what} is refused unchanged, and the error says how to restore a backup`, async () => {
        damage();
        const found = readdirSync(on.directory, { recursive: true }).length;
        const { code, message } = await refusal();
        expect(code).to.equal(expected);
        expect(message).to.contain(on.directory).and.contain('put a backup of the whole directory');
        expect(message).to.match(/copy (of )?the whole directory/);
        expect(message).not.to.match(/\n|Abort|wasm/i);
        expect(readdirSync(on.directory, { recursive: true }).length).to.be.within(found, found + 2);
      });
    }
  }

  return on;
}
