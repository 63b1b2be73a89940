/** Programs that go through the flow of one client, to be copied and run as they stand. */
import { csharpProgram } from './programs/csharp.ts';
import { curlProgram } from './programs/curl.ts';
import { goProgram } from './programs/go.ts';
import { javaProgram } from './programs/java.ts';
import { nodeProgram } from './programs/node.ts';
import { phpProgram } from './programs/php.ts';
import { pythonProgram } from './programs/python.ts';
import { rubyProgram } from './programs/ruby.ts';
import type { ProgramValues } from './programs/values.ts';

export interface ClientSnippet {
  readonly name: string;
  readonly code: string;
}

const PROGRAMS: Readonly<Record<string, (values: ProgramValues) => string>> = {
  curl: curlProgram,
  Node: nodeProgram,
  Python: pythonProgram,
  Go: goProgram,
  Java: javaProgram,
  PHP: phpProgram,
  'C#': csharpProgram,
  Ruby: rubyProgram,
};

/**
 * Each reads the secret from the environment variable CLIENT_SECRET, prints the address to open and
 * waits at the redirect URI for the browser. It ends with an exit code other than 0 where something
 * is not as it should be. For confidential clients.
 */
export const clientSnippets = (values: ProgramValues): ClientSnippet[] =>
  Object.entries(PROGRAMS).map(([name, program]) => ({ name, code: program(values) }));
