/** The example programs in interpreted languages. */
import { findProgram } from '../support/programs.ts';
import { atLeast, describePrograms, PYTHON } from './client-snippets.ts';

describePrograms('the example programs of a client', [
  { name: 'curl', program: findProgram('bash'), file: 'try.sh' },
  { name: 'Node', program: process.execPath, file: 'try.mjs' },
  { name: 'PHP', program: atLeast(8, 'php', '-v'), file: 'try.php' },
  { name: 'Ruby', program: findProgram('ruby'), file: 'try.rb' },
  PYTHON,
]);
