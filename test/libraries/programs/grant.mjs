import express from 'express';
import session from 'express-session';
import { gatehouse } from './documented.mjs';
import { createBrowser, port, report } from './driving.mjs';

const app = express();
app.use(session({ secret: 'not a secret', resave: false, saveUninitialized: false }));
app.use(gatehouse);
app.get('/connected', (request, response) => response.json(request.session.grant.response));
await new Promise((resolve) => app.listen(port, '127.0.0.1', resolve));
const first = await (await createBrowser()('/connect/gatehouse')).json();
if (first.error) throw new Error(JSON.stringify(first));
await report('connected', first.access_token, first.refresh_token);
process.exit();
