/** Reading a form keeps only one copy of its content in memory. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect } from 'chai';
import Koa from 'koa';
import { formOf, readForm } from '../../src/provider/form.ts';

describe('the service can read a form that arrives in chunks', () => {
  it('a form that arrives in chunks is copied into one buffer, so that the chunks can be freed', async () => {
    const app = new Koa();
    app.use(readForm);
    app.use((ctx) => {
      ctx.body = formOf(ctx).get('a');
    });
    const server = createServer(app.callback()).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const pieces = 500;
    const socket = connect(port, '127.0.0.1').setNoDelay(true);
    const type = 'Content-Type: application/x-www-form-urlencoded';
    socket.write(`POST / HTTP/1.1\r\nHost: x\r\n${type}\r\nContent-Length: ${pieces + 2}\r\n\r\na=`);
    const [request] = await once(server, 'request');
    const chunks: WeakRef<Buffer>[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(new WeakRef(chunk)));
    for (let sent = 0; sent < pieces - 1; sent += 1) {
      socket.write('x');
      await once(request, 'data');
    }
    collectGarbage();
    expect(chunks).to.have.length.above(pieces / 2);
    // Allow a few, because the stack may still hold the latest piece.
    expect(chunks.filter((chunk) => chunk.deref())).to.have.length.below(3);
    socket.write('x');
    const [answer] = await once(socket, 'data');
    expect(`${answer}`)
      .to.match(/^HTTP\/1\.1 200 OK/)
      .and.include('x'.repeat(pieces));
    socket.destroy();
    server.close();
  });
});

function collectGarbage(): void {
  setFlagsFromString('--expose-gc');
  runInNewContext('gc')();
}
