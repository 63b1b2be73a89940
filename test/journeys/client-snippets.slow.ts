/** The example programs in compiled languages. */
import { findProgram } from '../support/programs.ts';
import { atLeast, describePrograms } from './client-snippets.ts';

describePrograms('the compiled example programs of a client', [
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
