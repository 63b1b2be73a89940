import { createElement, useContext } from 'react';
import { createRoot } from 'react-dom/client';
import { AuthContext, AuthProvider } from 'react-oauth2-code-pkce';
import { authConfig } from './documented.mjs';

let context;
function App() {
  context = useContext(AuthContext);
  return null;
}
const root = document.createElement('div');
document.body.append(root);
createRoot(root).render(createElement(AuthProvider, { authConfig, children: createElement(App) }));

/** Waits for an access token other than the one before. */
async function next(before) {
  while (!context?.token || context.token === before) {
    if (context?.error) throw new Error(context.error);
    await new Promise((resolve) => requestAnimationFrame(resolve));
  }
  const stored = localStorage.getItem('ROCP_refreshToken');
  return [context.token, JSON.parse(stored)];
}
export const connect = async () => context.logIn();
export const connected = () => next('');

export async function refreshed() {
  const before = context.token;
  await context.refreshAccessToken();
  return next(before);
}
