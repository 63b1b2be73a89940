/** Examples for the help of commands whose options must be combined. */
import type { Command } from 'commander';

/** Command lines, without the word `gatehouse` at the beginning. */
const EXAMPLES = `
accounts add --email ada@example.com --name "Ada Lovelace" --invite
links remove ada@example.com --provider platform
passkeys remove ada@example.com --passkey pk_VcX0bq7mWcXk2f1S
organizations add --name "Northern Logistics"
organizations block org_VcX0bq7mWcXk2f1S gate_ci_Vc0bq7mWcXk2f1SqXk0V7b
organizations block org_VcX0bq7mWcXk2f1S gate_ci_Vc0bq7mWcXk2f1SqXk0V7b --warehouse wh_c1kXq0V7bWmX2fSc
warehouses add --organization org_VcX0bq7mWcXk2f1S --name Rotterdam
memberships set --account ada@example.com --organization org_VcX0bq7mWcXk2f1S --role member
memberships set --account ada@example.com --warehouse wh_c1kXq0V7bWmX2fSc --rights read,write
memberships remove --account ada@example.com --organization org_VcX0bq7mWcXk2f1S
memberships list --organization org_VcX0bq7mWcXk2f1S --role owner
nodes --wait 2 --within 5m
connections end acc_VcX0bq7mWcXk2f1S/gate_ci_Vc0bq7mWcXk2f1SqXk0V7b --yes
clients add --kind confidential --name "Acme Sync" --redirect-uri https://acme.example/callback
clients add --kind public --native --name "Acme Mobile" --redirect-uri com.acme.mobile:/callback
clients remove-secret gate_ci_Vc0bq7mWcXk2f1SqXk0V7b --secret=x7Qa
revoke --client gate_ci_Vc0bq7mWcXk2f1SqXk0V7b --yes
revoke --token - < leaked-token.txt
leaked - < found.txt
show - < found.txt
audit --since 7d --actor operator
audit --account ada@example.com --action sign_in_failed --limit 20
import people.jsonl --dry-run
import people.jsonl --prune --yes
import people.jsonl --as-of 2026-01-31T08:00Z
changes allow 480 --reason "ticket 4711"
`.split('\n');

/**
 * Adds required options to the usage of each command, and examples to its help. A noun gets an example of each verb.
 */
export function addExamples(command: Command, path: readonly string[] = []): void {
  const verbs = command.commands;
  for (const verb of verbs) addExamples(verb, [...path, verb.name()]);
  if (path.length === 0) return;
  const required = command.options.filter(({ mandatory }) => mandatory).map(({ flags }) => flags);
  command.usage([...required, command.usage()].join(' '));
  const name = path.join(' ');
  const of = (words: string) => EXAMPLES.filter((line) => line === words || line.startsWith(`${words} `));
  const shown = verbs.length === 0 ? of(name) : verbs.flatMap((verb) => of(`${name} ${verb.name()}`).slice(0, 1));
  if (shown.length === 0) return;
  const lines = shown.map((example) => `  gatehouse ${example}`);
  command.addHelpText('after', `\n${lines.length === 1 ? 'Example' : 'Examples'}:\n${lines.join('\n')}`);
}
