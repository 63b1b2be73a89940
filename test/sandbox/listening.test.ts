/** The ports of the sandbox. */
import { expect } from 'chai';
import { availablePort, listen } from '../../examples/sandbox/listening.ts';
import { freePort } from '../support/programs.ts';

describe('a port of the sandbox', () => {
  const host = '127.0.0.1';

  it('the sandbox listens on the preferred port, or on a free one if that is in use', async () => {
    const taken = await listen(undefined, { host, port: await freePort() });
    const other = await availablePort(taken.port, host);
    expect(other).to.not.equal(taken.port);
    await taken.close();
    expect(await availablePort(taken.port, host)).to.equal(taken.port);

    const { port, close } = await listen((_, response) => response.end('here'), {
      host,
      port: other,
    });
    expect(port).to.equal(other);
    expect(await (await fetch(`http://${host}:${port}`)).text()).to.equal('here');
    await close();
  });
});
