import { users } from './documented.mjs';

const tokens = ({ access_token, refresh_token }) => [access_token, refresh_token];
export const connect = () => users.signinRedirect();
export const connected = async () => tokens(await users.signinCallback());
export const refreshed = async () => tokens(await users.signinSilent());
export const revoked = () => users.revokeTokens(['refresh_token']);
