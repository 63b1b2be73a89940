import { strategy } from './documented.mjs';
import { createBrowser, report, serve } from './driving.mjs';

await serve(async (request) => {
  try {
    return Response.json(await strategy.authenticate(request));
  } catch (thrown) {
    if (thrown instanceof Response) return thrown;
    return new Response(String(thrown?.stack), { status: 500 });
  }
});
const first = await (await createBrowser()('/connect')).json();
await report('connected', first.access_token, first.refresh_token);
const tokens = await strategy.refreshToken(first.refresh_token);
await report('refreshed', tokens.accessToken(), tokens.refreshToken());
await strategy.revokeToken(tokens.refreshToken());
await report('revoked', tokens.accessToken(), tokens.refreshToken());
process.exit();
