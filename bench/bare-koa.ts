/** The baseline of the measurements: a Koa that echoes the request body and does nothing else. */
import Koa from 'koa';

const app = new Koa();
app.use(async (ctx) => {
  const chunks: Buffer[] = [];
  for await (const chunk of ctx.req) chunks.push(chunk);
  ctx.type = 'application/json';
  ctx.body = Buffer.concat(chunks);
});
app.listen(Number(process.argv[2]), '127.0.0.1');
