/** The example program for Node. For the other languages see `client-snippets.slow.ts`. */
import { describePrograms } from './client-snippets.ts';

describePrograms('the example program of a client for Node', [
  { name: 'Node', program: process.execPath, file: 'try.mjs' },
]);
