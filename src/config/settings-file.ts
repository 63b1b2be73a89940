/** The YAML file as it stands, before any of it is judged. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { LineCounter, parseDocument } from 'yaml';
import { type ConfigurationProblem, ConfigurationProblems } from './problems.ts';
import { sections } from './schema/schema.ts';

/** The directory of package.json, from which paths in the file are counted. */
export const projectDirectory = fileURLToPath(new URL('../../', import.meta.url));

export const defaultFile = fileURLToPath(new URL('../../config/gatehouse.yaml', import.meta.url));

export type FileContent = Record<string, unknown>;

/**
 * The settings of `file`, unchecked.
 *
 * The default file may be missing, and everything then has its default; a file that was asked for
 * may not.
 *
 * @throws ConfigurationProblems when the file cannot be read or is not a YAML mapping.
 */
export function readSettingsFile(file: string): FileContent {
  const source = sourceOf(file);
  if (source === undefined) return {};
  const content = parsed(file, source) ?? {};
  if (typeof content !== 'object' || Array.isArray(content)) {
    throw problem({
      path: file,
      message: 'is not a list of settings',
      remedy: 'write settings as `name: value` lines, as config/gatehouse.yaml does',
    });
  }
  // A heading under which everything is commented out is null in YAML, and means its defaults.
  return Object.fromEntries(
    Object.entries(content).filter(
      ([name, value]) => value !== null || !Object.hasOwn(sections, name),
    ),
  );
}

function sourceOf(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' && file === defaultFile) return undefined;
    throw problem({
      path: file,
      message: `cannot be read (${code})`,
      remedy: 'name a settings file that exists and that this process may read',
    });
  }
}

function parsed(file: string, source: string): unknown {
  const lines = new LineCounter();
  const document = parseDocument(source, { lineCounter: lines, prettyErrors: false });
  // Only the first: what follows a syntax error is mostly its consequence.
  const [error] = [...document.errors, ...document.warnings];
  if (error !== undefined) {
    const { line, col } = lines.linePos(error.pos[0]);
    throw problem({
      path: `${file}, line ${line}, column ${col}`,
      // Some messages end in the text they choke on, which may be a password.
      message: `is not YAML: ${error.message.replace(/: ".*$/s, '')}`,
      remedy: 'correct that line; a text with special characters goes into quotes',
    });
  }
  try {
    return document.toJS();
  } catch {
    throw problem({
      path: file,
      message: 'has an alias without its anchor, or too many',
      remedy: 'write the value out, or put it into quotes if it begins with `*`',
    });
  }
}

const problem = (found: ConfigurationProblem) => new ConfigurationProblems([found]);
