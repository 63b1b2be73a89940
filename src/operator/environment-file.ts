/** Parses an EnvironmentFile, and the environment that `systemctl show` prints. */

/**
 * Reads `NAME=value` lines as systemd does (systemd.exec(5), EnvironmentFile=): `#` and `;` begin a comment only at the
 * start of a line, and belong to the value elsewhere.
 */
export function readEnvironmentFile(text: string): Record<string, string> {
  const lines = text.replaceAll(/\\\r?\n/g, '').split(/\r?\n/);
  return variablesIn(lines, unquoted);
}

/** Parses the output of `systemctl show --property=Environment`, such as `A=1 "B=two words"`. */
export function readAssignments(text: string): Record<string, string> {
  const words = text.match(/(?:"(?:\\.|[^"\\])*"|\\.|[^\s"\\])+/g) ?? [];
  return variablesIn(words.map(unquoted), (value) => value);
}

function variablesIn(assignments: readonly string[], read: (value: string) => string): Record<string, string> {
  const found = assignments.map((one) => /^\s*([A-Za-z_]\w*)=(.*)$/s.exec(one));
  return Object.fromEntries(found.flatMap((one) => (one ? [[one[1], read(one[2] ?? '')]] : [])));
}

function unquoted(value: string): string {
  const trimmed = value.trim();
  const parts = trimmed.matchAll(/'([^']*)'|"((?:\\.|[^"\\])*)"|\\(.)|([^'"\\]+)/gs);
  return [...parts]
    .map(([, single, double, escaped, plain]) => {
      return single ?? double?.replaceAll(/\\(.)/gs, '$1') ?? escaped ?? plain ?? '';
    })
    .join('');
}
