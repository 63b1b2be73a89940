/** An example for the help of every command: what is typed, as it would be typed. */
import type { Command } from 'commander';

/** By the words of the command; each is what follows `gatehouse`. */
const EXAMPLES: Readonly<Record<string, readonly string[]>> = {
  'accounts add': [
    'accounts add --email ada@example.com --name "Ada Lovelace" --invite',
    'accounts add --email ada@example.com --name "Ada Lovelace" --password-file ada.txt',
  ],
  'accounts invite': ['accounts invite ada@example.com'],
  'accounts list': [
    'accounts list --state suspended',
    'accounts list --match example.com --limit 50 --after acc_VcX0bq7mWcXk2f1S',
  ],
  'accounts show': ['accounts show ada@example.com'],
  'accounts rename': ['accounts rename ada@example.com --name "Ada King"'],
  'accounts change-email': ['accounts change-email ada@example.com --to ada.king@example.com'],
  'accounts delete': ['accounts delete ada@example.com --reason "ticket 4711"'],
  'accounts links': ['accounts links ada@example.com'],
  'accounts unlink': ['accounts unlink ada@example.com --provider platform'],
  'accounts passkeys': [
    'accounts passkeys ada@example.com',
    'accounts passkeys ada@example.com --remove pk_VcX0bq7mWcXk2f1S',
  ],
  'accounts suspend': ['accounts suspend ada@example.com'],
  'accounts resume': ['accounts resume ada@example.com'],
  'organizations add': ['organizations add --name "Northern Logistics"'],
  'organizations list': ['organizations list --match north'],
  'organizations rename': [
    'organizations rename org_VcX0bq7mWcXk2f1S --name "Northern Lights"',
    'organizations rename org_VcX0bq7mWcXk2f1S --external-id 4711',
  ],
  'organizations remove': ['organizations remove org_VcX0bq7mWcXk2f1S'],
  'warehouses add': ['warehouses add --organization org_VcX0bq7mWcXk2f1S --name Rotterdam'],
  'warehouses list': ['warehouses list --organization org_VcX0bq7mWcXk2f1S'],
  'warehouses rename': ['warehouses rename wh_c1kXq0V7bWmX2fSc --name "Rotterdam, Europoort"'],
  'warehouses remove': ['warehouses remove wh_c1kXq0V7bWmX2fSc --yes'],
  'memberships set': [
    'memberships set --account ada@example.com --organization org_VcX0bq7mWcXk2f1S --role member',
    'memberships set --account ada@example.com --warehouse wh_c1kXq0V7bWmX2fSc --rights read,write',
  ],
  'memberships remove': [
    'memberships remove --account ada@example.com --organization org_VcX0bq7mWcXk2f1S',
  ],
  'memberships list': [
    'memberships list --account ada@example.com',
    'memberships list --warehouse wh_c1kXq0V7bWmX2fSc',
    'memberships list --organization org_VcX0bq7mWcXk2f1S --role owner',
  ],
  nodes: ['nodes', 'nodes --wait 2 --within 5m'],
  'connections list': [
    'connections list --account ada@example.com',
    'connections list --client gate_ci_Vc0bq7mWcXk2f1SqXk0V7b --limit 50',
  ],
  'sessions list': ['sessions list --account ada@example.com'],
  'sessions end': ['sessions end --account ada@example.com --yes', 'sessions end --all --yes'],
  'clients add': [
    'clients add --kind confidential --name "Acme Sync" --redirect-uri https://acme.example/callback',
    'clients add --kind public --native --name "Acme Mobile" --redirect-uri com.acme.mobile:/callback',
    'clients add --kind machine --name "Nightly export"',
  ],
  'clients list': ['clients list --kind machine', 'clients list --owner ada@example.com'],
  'clients update': [
    'clients update gate_ci_Vc0bq7mWcXk2f1SqXk0V7b --name "Acme Sync 2"',
    'clients update gate_ci_Vc0bq7mWcXk2f1SqXk0V7b --redirect-uri https://acme.example/callback',
  ],
  'clients show': ['clients show gate_ci_Vc0bq7mWcXk2f1SqXk0V7b'],
  'clients suspend': ['clients suspend gate_ci_Vc0bq7mWcXk2f1SqXk0V7b'],
  'clients resume': ['clients resume gate_ci_Vc0bq7mWcXk2f1SqXk0V7b'],
  'clients transfer': ['clients transfer gate_ci_Vc0bq7mWcXk2f1SqXk0V7b --owner ada@example.com'],
  'clients rotate-secret': ['clients rotate-secret gate_ci_Vc0bq7mWcXk2f1SqXk0V7b'],
  'clients remove-secret': ['clients remove-secret gate_ci_Vc0bq7mWcXk2f1SqXk0V7b --secret=x7Qa'],
  'clients delete': ['clients delete gate_ci_Vc0bq7mWcXk2f1SqXk0V7b --yes'],
  revoke: [
    'revoke --account ada@example.com',
    'revoke --recorded --since 7d',
    'revoke --client gate_ci_Vc0bq7mWcXk2f1SqXk0V7b --yes',
    'revoke --token - < leaked-token.txt',
  ],
  explain: ['explain', 'explain - < token.txt', 'explain gate_ci_Vc0bq7mWcXk2f1SqXk0V7b'],
  audit: [
    'audit --since 7d --actor operator',
    'audit --account ada@example.com --action sign_in_failed --limit 20',
    'audit --client gate_ci_Vc0bq7mWcXk2f1SqXk0V7b --json',
  ],
  import: [
    'import people.jsonl --dry-run',
    'import people.jsonl --prune --yes',
    'import people.jsonl --adopt-by-name --dry-run',
  ],
  'check-config': ['check-config', 'check-config config/production.yaml'],
  reload: ['reload'],
  'keys list': ['keys'],
  'keys generate': ['keys generate --kind token'],
  doctor: ['doctor'],
  migrate: ['migrate --dry-run', 'migrate'],
  completion: ['completion bash >> ~/.bashrc'],
};

/** Adds its examples to the help of each command, and to that of a noun those of its verbs. */
export function addExamples(command: Command, path: readonly string[] = []): void {
  const verbs = command.commands;
  for (const verb of verbs) addExamples(verb, [...path, verb.name()]);
  const name = path.join(' ');
  const shown = verbs.length === 0 ? [name] : verbs.map((verb) => `${name} ${verb.name()}`);
  const examples = shown.flatMap(
    (one) => EXAMPLES[one]?.slice(0, verbs.length === 0 ? 9 : 1) ?? [],
  );
  if (path.length === 0 || examples.length === 0) return;
  const lines = examples.map((example) => `  gatehouse ${example}`);
  command.addHelpText(
    'after',
    `\n${lines.length === 1 ? 'Example' : 'Examples'}:\n${lines.join('\n')}`,
  );
}
