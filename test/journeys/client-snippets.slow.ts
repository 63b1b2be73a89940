/** The programs of languages that are compiled first, each time. */
import { findProgram } from '../support/programs.ts';
import { atLeast, describePrograms } from './client-snippets.ts';

describePrograms('the ready-to-run programs of a client, compiled', [
  { name: 'Go', program: findProgram('go'), arguments: ['run'], file: 'try.go' },
  {
    name: 'Java',
    program: findProgram('javac') && atLeast(17, 'java', '-version'),
    // Compiles sooner than it would run well.
    arguments: ['-XX:TieredStopAtLevel=1'],
    file: 'Try.java',
  },
  { name: 'C#', program: atLeast(10, 'dotnet', '--version'), arguments: ['run'], file: 'try.cs' },
]);
