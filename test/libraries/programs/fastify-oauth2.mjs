import { app } from './documented.mjs';
import { createBrowser, port, report } from './driving.mjs';

await app.listen({ port: Number(port) });
const first = await (await createBrowser()('/connect')).json();
await report('connected', first.access_token, first.refresh_token);
const { token: second } = await app.gatehouse.getNewAccessTokenUsingRefreshToken(first, {});
await report('refreshed', second.access_token, second.refresh_token);
await app.gatehouse.revokeToken(second, 'refresh_token');
await report('revoked', second.access_token, second.refresh_token);
process.exit();
