/** The example programs in all languages except JavaScript. */
import { findProgram } from '../support/programs.ts';
import { describePrograms, PYTHON } from './client-snippets.ts';

describePrograms('the example programs of a client', [
  { name: 'curl', program: findProgram('bash'), file: 'try.sh' },
  PYTHON,
]);
