import { users } from './documented.mjs';

export const connect = () => users.signinRedirect();
