/** The example programs in all languages except JavaScript. */
import { findProgram } from '../support/programs.ts';
import { atLeast, describePrograms, PYTHON } from './client-snippets.ts';

describePrograms('the example programs of a client', [
  { name: 'curl', program: findProgram('bash'), file: 'try.sh' },
  { name: 'PHP', program: atLeast(8, 'php', '-v'), file: 'try.php' },
  { name: 'Ruby', program: findProgram('ruby'), file: 'try.rb' },
  PYTHON,
  { name: 'Go', program: findProgram('go'), arguments: ['run'], file: 'try.go' },
  {
    name: 'Java',
    program: findProgram('javac') && atLeast(17, 'java', '-version'),
    // Optimize less: optimizing takes longer than the program runs.
    arguments: ['-XX:TieredStopAtLevel=1'],
    file: 'Try.java',
  },
  { name: 'C#', program: atLeast(10, 'dotnet', '--version'), arguments: ['run'], file: 'try.cs' },
]);
