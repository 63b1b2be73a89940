// The types of `entry.mjs`.
export * from './resource-server.js';
